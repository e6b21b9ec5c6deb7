"""A Prometheus server in its own process."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.child_process import child_process
from support.waiting import wait_until

START_TIMEOUT_S = 90.0
ANSWER_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class PrometheusServer:
    """A running server."""

    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def query(self, expression: str, at_s: float | None = None) -> list[tuple[dict[str, str], float]]:
        """The labels and the value of each series of an instant query, now or at a time."""
        at = {} if at_s is None else {"time": f"{at_s:.3f}"}
        found = self.get("/api/v1/query?" + urllib.parse.urlencode({"query": expression, **at}))
        return [(row["metric"], float(row["value"][1])) for row in found["data"]["result"]]

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=ANSWER_TIMEOUT_S) as response:
            return json.load(response)

    def is_ready(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.url}/-/ready", timeout=1).close()
        except OSError:
            return False
        return True


@contextmanager
def prometheus_server(
    program: Path, config: Path, port: int, folder: Path, *arguments: str
) -> Iterator[PrometheusServer]:
    """Start with a configuration file, wait until it is ready, stop at the end."""
    server = PrometheusServer(port, folder / "prometheus.log")
    command = [
        str(program),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
        *arguments,
    ]
    with child_process(command, server.log) as process:

        def is_ready() -> bool:
            assert process.poll() is None, server.log.read_text()
            return server.is_ready()

        wait_until(is_ready, "Prometheus is not ready", START_TIMEOUT_S)
        yield server
