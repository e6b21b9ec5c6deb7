"""The host of the hostile bench: as `odradek serve` runs it, with a probe on its event loop.

Prints ``ready port=N``. Each line on standard input is answered by the figures since the previous one, as
JSON; when standard input closes, the host stops.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from array import array
from pathlib import Path

from odradek.server.config import load_config
from odradek.server.host import Host
from odradek.server.plugins.process import freeze_garbage, keep_buffers

TICK_S = 0.001
NS_PER_MS = 1e6


class LoopProbe:
    """How long the event loop is busy between two ticks of a timer.

    CPU time of the loop's thread, because on a shared machine wall time measures the other programs too. A
    callback that computes for 50 ms shows as 50 ms; a busy loop without long callbacks shows as one tick.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.cpu_ns = array("q")
        self.wall_ns = array("q")
        self.last_cpu_ns, self.last_wall_ns = time.thread_time_ns(), time.perf_counter_ns()
        self.tick()

    def tick(self) -> None:
        cpu_ns, wall_ns = time.thread_time_ns(), time.perf_counter_ns()
        self.cpu_ns.append(cpu_ns - self.last_cpu_ns)
        self.wall_ns.append(wall_ns - self.last_wall_ns)
        self.last_cpu_ns, self.last_wall_ns = cpu_ns, wall_ns
        self.loop.call_later(TICK_S, self.tick)

    def report(self) -> dict[str, float]:
        """Milliseconds between ticks since the last report."""
        cpu, wall = sorted(self.cpu_ns), sorted(self.wall_ns)
        del self.cpu_ns[:], self.wall_ns[:]
        last = len(cpu) - 1
        return {
            "ticks": len(cpu),
            "cpu_p999_ms": cpu[int(0.999 * last)] / NS_PER_MS,
            "cpu_max_ms": cpu[last] / NS_PER_MS,
            "wall_p999_ms": wall[int(0.999 * last)] / NS_PER_MS,
            "wall_max_ms": wall[last] / NS_PER_MS,
        }


async def main(settings: list[str]) -> None:
    keep_buffers()
    host = Host(load_config(None, settings))
    await host.start()
    freeze_garbage()
    probe = LoopProbe(asyncio.get_running_loop())
    print(f"ready port={host.listeners[0].bound_port}", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        accounts = host.telemetry.accounts
        print(
            json.dumps(
                {
                    **probe.report(),
                    "unexpected_errors": host.dispatcher.unexpected_errors,
                    "balanced": accounts.balanced and all(each.stats().balanced for each in host.forwarders),
                    "pushes": accounts.appended,
                    "delivered": sum(each.stats().delivered for each in host.forwarders),
                    "queued": sum(each.stats().queued for each in host.forwarders),
                    "dropped": sum(sum(each.stats().dropped.values()) for each in host.forwarders),
                }
            ),
            flush=True,
        )
    await host.stop()


if __name__ == "__main__":
    factory = None
    try:
        import uvloop

        factory = uvloop.new_event_loop
    except ImportError:
        print(f"{Path(__file__).stem}: without uvloop", file=sys.stderr)
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main(sys.argv[1:]))
