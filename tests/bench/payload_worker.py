"""Opening a large payload in a worker process, compared with opening it on the event loop.

The payloads are Java-like ones that are too large for the loop. The host's share is the CPU time to hand one
over and to take the answer; the rest is the worker's. One payload is in flight.

Usage, from the folder above: ``python -m bench.payload_worker [--rounds 5]``
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Callable

from bench.harness import cpu_ns, head, spread
from bench.labeling import LABELS
from bench.payloads import java
from odradek.otlp.labeled_payload import PayloadLimits
from odradek.otlp.labels import encode_labels
from odradek.process.limits import keep_buffers, new_loop
from odradek.process.payload_workers import PayloadWorkers
from odradek.telemetry.payload import PayloadWork

METRICS = (500, 2400, 7000)
WINDOW_S = 0.3


async def opened(workers: PayloadWorkers, work: PayloadWork) -> bytes:
    """Hand a payload over and wait for the answer."""
    answered = asyncio.get_running_loop().create_future()
    workers.offload(work, answered.set_result)
    answer = await answered
    assert isinstance(answer, bytes), answer
    return answer


async def shares_us(workers: PayloadWorkers, work: PayloadWork) -> tuple[float, float]:
    """CPU microseconds of a payload in the host and in the worker, over a window of payloads."""
    (worker,) = workers.processes
    worker_ns, host_ns = cpu_ns(worker.pid), time.process_time_ns()
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < WINDOW_S:
        await opened(workers, work)
        count += 1
    worker_ns, host_ns = cpu_ns(worker.pid) - worker_ns, time.process_time_ns() - host_ns
    return host_ns / count / 1000, worker_ns / count / 1000


def inline_us(work: Callable[[], bytes]) -> float:
    """CPU microseconds of the same work on the loop."""
    count, begin = 0, time.process_time()
    while (spent := time.process_time() - begin) < WINDOW_S:
        work()
        count += 1
    return spent / count * 1e6


async def compare(rounds: int) -> None:
    workers = PayloadWorkers(1)
    for count in METRICS:
        payload = java("large", count)
        labels = encode_labels(LABELS)
        work = PayloadWork(codec=payload.codec, data=payload.wire, labels=labels, limits=PayloadLimits())
        assert await opened(workers, work) == work()
        shares, inline = [], []
        for _ in range(rounds):
            shares.append(await shares_us(workers, work))
            inline.append(inline_us(work))
        host, worker = zip(*shares, strict=True)
        both = statistics.median(host) + statistics.median(worker)
        print(f"\n{count} metrics: {len(payload.raw)} bytes, {len(payload.wire)} in zstd")
        print(f"  on the loop          {spread(inline, 0):>22} µs")
        print(f"  handed over: host    {spread(host, 0):>22} µs")
        print(f"  handed over: worker  {spread(worker, 0):>22} µs")
        print(f"  both {both / statistics.median(inline):.1f} times as much as on the loop")
    await workers.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print(head("payload worker"), file=sys.stderr)
    keep_buffers()
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(compare(rounds))


if __name__ == "__main__":
    main()
