"""The host of the hostile bench: as `odradek serve` runs it, with a probe on its event loop.

Prints ``ready port=N``. Each line on standard input is answered by the figures since the previous one, as
JSON; when standard input closes, the host stops.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from array import array
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from odradek.broker.dispatch.response_elements import collecting
from odradek.broker.dispatch.served import SERVED
from odradek.process.garbage import tend_garbage
from odradek.process.limits import keep_buffers, switch_threads_often
from odradek.programs.config import load_config
from odradek.programs.host import Host
from odradek.waiting.step_runner import StepRunner
from odradek.wire.api_names import api_name

TICK_S = 0.001
NS_PER_MS = 1e6
HOLD_NS = 5_000_000


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
        self.note()
        self.loop.call_later(TICK_S, self.tick)

    def note(self) -> None:
        """Note the time since the last tick."""
        cpu_ns, wall_ns = time.thread_time_ns(), time.perf_counter_ns()
        self.cpu_ns.append(cpu_ns - self.last_cpu_ns)
        self.wall_ns.append(wall_ns - self.last_wall_ns)
        self.last_cpu_ns, self.last_wall_ns = cpu_ns, wall_ns

    def report(self) -> dict[str, float]:
        """Milliseconds between ticks since the last report, and since the last tick."""
        self.note()
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


class Holds:
    """The calls that kept the event loop busy for longer than `HOLD_NS`, by name: how often, and the longest.

    Requests and late responses by API, steps by their generator, actions of the timer by their function.
    """

    def __init__(self, host: Host) -> None:
        self.all_ns = array("q")
        """Every call."""
        self.longest_ns: dict[str, int] = {}
        self.times: dict[str, int] = {}
        self.collection_began_ns = 0
        answer, finished = host.dispatcher.answer, host.dispatcher.finished
        advance, schedule = StepRunner.advance, host.timer.schedule

        def timed_answer(frame: Any, offset: int, connection: Any) -> Any:
            api_key = int.from_bytes(frame[offset : offset + 2])
            name = f"{api_name(api_key)}Request" if api_key in SERVED else "unknown API"
            return self.timed(name, answer)(frame, offset, connection)

        def timed_advance(runner: StepRunner, task: Any, end_ns: int) -> Any:
            steps = task.steps
            # `collecting` collects the elements that a handler yields: the handler's name says more
            frame = steps.gi_frame if steps.__name__ == collecting.__name__ else None
            named = steps if frame is None else frame.f_locals["work"]
            return self.timed(f"step of {named.__qualname__}", advance)(runner, task, end_ns)

        def timed_schedule(deadline_ms: int, action: Callable[[], None]) -> Any:
            called = action.func if isinstance(action, partial) else action
            # not its repr, which may be long
            name = f"timer: {getattr(called, '__qualname__', type(called).__name__)}"
            return schedule(deadline_ms, self.timed(name, action))

        def timed_finished(route: Any, *rest: Any) -> Any:
            return self.timed(f"response: {route.request.__name__}", finished)(route, *rest)

        host.turns.do_work = self.timed("ring or a turn of long requests", host.turns.do_work)  # type: ignore[method-assign]
        host.dispatcher.finished = timed_finished  # type: ignore[assignment,method-assign]
        host.dispatcher.answer = timed_answer  # type: ignore[method-assign]
        StepRunner.advance = timed_advance  # type: ignore[assignment,method-assign]
        gc.callbacks.append(self.collection)
        type(host.timer).schedule = lambda _, *given: timed_schedule(*given)  # type: ignore[method-assign]

    def collection(self, phase: str, info: dict[str, int]) -> None:
        """Note a collection of garbage, which is a part of the call that it interrupts."""
        if phase == "start":
            self.collection_began_ns = time.thread_time_ns()
        else:
            self.note(f"garbage, generation {info['generation']}", self.collection_began_ns)

    def note(self, name: str, started_ns: int) -> None:
        """Count a call if it took long."""
        took_ns = time.thread_time_ns() - started_ns
        self.all_ns.append(took_ns)
        if took_ns > HOLD_NS:
            self.times[name] = self.times.get(name, 0) + 1
            self.longest_ns[name] = max(self.longest_ns.get(name, 0), took_ns)

    def timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call, which is noted if it takes long."""

        def timed_call(*arguments: Any) -> Any:
            started_ns = time.thread_time_ns()
            try:
                return call(*arguments)
            finally:
                self.note(name, started_ns)

        return timed_call

    def p999_ms(self) -> float:
        """Milliseconds that 99.9 % of the calls since the last report did not exceed."""
        taken = sorted(self.all_ns) or [0]
        del self.all_ns[:]
        return taken[int(0.999 * (len(taken) - 1))] / NS_PER_MS

    def report(self) -> dict[str, tuple[int, float]]:
        """How often each call was long, and milliseconds of the longest."""
        return {name: (self.times[name], took_ns / NS_PER_MS) for name, took_ns in self.longest_ns.items()}


async def main(settings: list[str]) -> None:
    keep_buffers()
    switch_threads_often()
    host = Host(load_config(None, settings))
    holds = Holds(host)
    await host.start()
    tend_garbage(host.clock, host.timer, host.broker.steps)
    probe = LoopProbe(asyncio.get_running_loop())
    print(f"ready port={host.listeners[0].bound_port}", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        accounts = host.telemetry.accounts
        print(
            json.dumps(
                {
                    **probe.report(),
                    "call_p999_ms": holds.p999_ms(),
                    "holds": holds.report(),
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
