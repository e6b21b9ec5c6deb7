"""A Java client that runs until it is told to end, and then says what it has counted itself."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from integration.java.jvm import Jvm
from support.totals_collector import Series

PATIENCE_S = 60


@dataclass
class TotalsClient:
    """A running client of `odradek.TelemetryClient`."""

    process: subprocess.Popen[str]

    def totals(self) -> dict[Series, float]:
        """Close the client, and return the totals that it had when it built its last push."""
        out, _ = self.process.communicate("end\n", timeout=PATIENCE_S)
        assert self.process.returncode == 0, out
        rows = [line.split("\t") for line in out.splitlines()]
        return {(name, labels): float(value) for name, labels, value in rows}


@contextmanager
def totals_client(jvm: Jvm, bootstrap: str, kind: str) -> Iterator[TotalsClient]:
    """A ``producer`` or ``consumer``; killed at the end."""
    command = jvm.command("odradek.TelemetryClient", bootstrap, "orders", f"java-{kind}", kind, "totals")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield TotalsClient(process)
        finally:
            process.kill()
