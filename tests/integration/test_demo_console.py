"""``odradek demo --console`` as a user runs it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.error import URLError

import pytest

from odradek.cli import main
from support.waiting import wait_until

pytest.importorskip("confluent_kafka")
if "console" not in main.installed_commands():
    pytest.skip("odradek-console is not installed", allow_module_level=True)

PATIENCE_S = 60
PAUSE_S = 0.1
"""Between two questions: the console answers 20 in a second."""
PAGES = ("/", "/subscriptions", "/quotas", "/delivery", "/host")
CLIENTS = ["demo-consumer", "demo-producer", "demo-slow-consumer"]


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
        """The findings of each client."""
        time.sleep(PAUSE_S)
        rows = json.loads(self.get("/api/v1/clients"))["clients"]
        return {row["client_id"]: row["findings"] for row in rows}

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


def test_the_console_shows_the_clients_and_ends_with_the_demo() -> None:
    with demo() as running:
        wait_until(lambda: sorted(running.findings()) == CLIENTS, running.findings, PATIENCE_S)
        running.process.send_signal(signal.SIGTERM)
        said = running.process.communicate(timeout=PATIENCE_S)[0]

        assert running.process.returncode == 0, said
        assert running.is_gone()
    assert " labeled pushes of 3 client instances" in said


@pytest.mark.slow  # the finding needs ten seconds of a slow application
def test_with_few_rights_it_shows_all_pages_and_it_ends_when_the_demo_is_killed() -> None:
    with demo("--secure") as running:
        wait_until(
            lambda: running.findings().get(CLIENTS[2]) == ["busy-application"],
            running.findings,
            PATIENCE_S,
        )
        pages = [running.get(path) for path in PAGES]
        running.process.kill()
        wait_until(running.is_gone, "the console ends", PATIENCE_S)

    assert b"busy-application" in pages[0]
    assert b"otlp" in pages[3]


def test_without_the_console_the_demo_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main, "installed_commands", dict)

    assert main.run(["demo", "--console"]) == 1
    assert "install the extra odradek[console]" in capsys.readouterr().err
