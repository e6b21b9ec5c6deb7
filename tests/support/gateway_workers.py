"""A gateway with several workers, as a user starts it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from contrib.capture.ports import free_port, free_range

from support.gateways import GatewayProcess, gateway_of
from support.waiting import wait_until

LABEL = "gateway_worker"
STARTED = re.compile(rf"worker started {LABEL}=(\d+) pid=(\d+)")
DRAIN = "gateway.drain.ms=500"


class WorkerGateway:
    """A running gateway with workers, and its endpoint of metrics."""

    def __init__(self, process: GatewayProcess, metrics_port: int) -> None:
        self.process = process
        self.metrics_port = metrics_port

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.process.bootstrap.rpartition(":")
        return host, int(port)

    @property
    def pids(self) -> dict[int, int]:
        """The process of each worker that was started last."""
        found = (STARTED.search(line) for line in list(self.process.errors))
        return {int(each[1]): int(each[2]) for each in found if each is not None}

    def kill(self, worker: int) -> None:
        os.kill(self.pids[worker], signal.SIGKILL)

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def values(self, name: str) -> dict[str, float]:
        """The values of a metric by worker, summed; the key is empty without a worker."""
        found: dict[str, float] = {}
        for line in self.get("/metrics")[1].splitlines():
            if re.match(rf"{name}[{{ ]", line):
                label = re.search(rf'{LABEL}="(\d+)"', line)
                key = label[1] if label else ""
                found[key] = found.get(key, 0) + float(line.rpartition(" ")[2])
        return found

    def wait_ready(self, workers: int) -> None:
        """Wait until so many workers serve."""
        self.wait_for("odradek_gateway_workers", {"": workers})

    def wait_for(self, name: str, wanted: Mapping[str, float]) -> None:
        """Wait until a metric has these values by worker."""
        wait_until(lambda: self.values(name) == wanted, lambda: self.values(name), 40)


@contextlib.contextmanager
def workers_of(
    upstream: str, data_dir: Path, *settings: str, workers: int = 2, port: int | None = None
) -> Iterator[WorkerGateway]:
    """A gateway with workers in front of a cluster whose node is 1; stopped at the end."""
    first, metrics_port = port or free_range(2), free_port()
    given = (
        f"listeners=PLAINTEXT://127.0.0.1:{first}",
        "gateway.nodes=1",
        f"metrics.listener=http://127.0.0.1:{metrics_port}",
        f"gateway.workers={workers}",
        DRAIN,
        *settings,
    )
    with gateway_of(upstream, data_dir, *given) as process:
        yield WorkerGateway(process, metrics_port)
