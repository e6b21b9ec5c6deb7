"""``odradek demo --console`` as a user runs it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.error import URLError

from support.waiting import wait_until

PATIENCE_S: Final = 60
PAUSE_S: Final = 0.1
"""Between two questions: the console answers 20 in a second."""
CLIENTS: Final = ["demo-consumer", "demo-producer", "demo-slow-consumer"]
FINDING: Final = "busy-application"


@dataclass
class Demo:
    """A demo, and the URL of its console without the last slash."""

    process: subprocess.Popen[str]
    url: str

    def get(self, path: str) -> bytes:
        """The body of a page, which must exist."""
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE_S) as answer:
            body: bytes = answer.read()
        return body

    def findings(self) -> dict[str, list[str]]:
        """The findings of each client, and the notes about it."""
        return {row["client_id"]: row["findings"] + row["notes"] for row in self.clients()}

    def pushes(self) -> int:
        """The pushes of the client that has most."""
        return int(max(row["pushes"] for row in self.clients()))

    def clients(self) -> list[dict[str, Any]]:
        """The rows of the clients."""
        time.sleep(PAUSE_S)
        rows: list[dict[str, Any]] = json.loads(self.get("/api/v1/clients"))["clients"]
        return rows

    def wait_for_the_finding(self) -> None:
        """Wait until the slow consumer has its finding."""
        wait_until(lambda: self.findings().get(CLIENTS[2]) == [FINDING], self.findings, PATIENCE_S)

    def is_gone(self) -> bool:
        """Whether nothing listens at the address of the console."""
        try:
            self.get("/healthz")
        except (URLError, ConnectionError):
            return True
        return False


@contextmanager
def demo(*options: str) -> Iterator[Demo]:
    """A demo that has said where its console is."""
    command = [sys.executable, "-m", "odradek", "demo", "--console", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            said = ""
            for line in process.stdout:
                said += line
                found = re.match(r"console at (http://127\.0\.0\.1:\d+)/$", line)
                if found is not None:
                    break
            else:
                raise AssertionError(said)
            yield Demo(process, found[1])
        finally:
            process.kill()
