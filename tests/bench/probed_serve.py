"""``odradek serve`` with a probe on its event loop. SIGUSR1 prints its figures since the last one as JSON."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import Any

from bench.hostile_host import LoopProbe
from odradek.cli.main import main
from odradek.programs.host import Host
from support.child_process import same_imports
from support.hosts import ServeProcess

TIMEOUT_S = 30


class ProbedServe(ServeProcess):
    """The process, from outside."""

    program = ("-m", "bench.probed_serve")

    def __init__(self, *arguments: str) -> None:
        super().__init__(*arguments, env=same_imports())

    def report(self) -> dict[str, float]:
        """How long the loop was busy since the last report, see `LoopProbe.report`."""
        self.process.send_signal(signal.SIGUSR1)
        found: dict[str, Any] = json.loads(self.lines.get(timeout=TIMEOUT_S))
        return found


def serve_with_probe() -> None:
    """Run the command line with hosts that have the probe."""
    start = Host.start

    async def probed(host: Host) -> None:
        await start(host)
        loop = asyncio.get_running_loop()
        probe = LoopProbe(loop)
        loop.add_signal_handler(signal.SIGUSR1, lambda: print(json.dumps(probe.report()), flush=True))

    Host.start = probed  # type: ignore[assignment,method-assign]
    main()


if __name__ == "__main__":
    serve_with_probe()
