"""The workers of one gateway, and what their parent does itself: the metrics of all, probes and signals."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from odradek.metrics.metric import MetricRow, Metrics
from odradek.process.hangup import HANGUP
from odradek.programs.config import HostConfig
from odradek.programs.gateway_workers.link import Assignment
from odradek.programs.gateway_workers.share import folder_of, former_workers
from odradek.programs.gateway_workers.worker import ANSWER_S, Problems, Worker
from odradek.programs.spine import Part, Spine
from odradek.telemetry.topology import merged
from odradek.waiting.clock import Clock

log = logging.getLogger(__name__)

STOPS: Final = 4
"""A worker may take ``shutdown.timeout.ms`` so many times: answers, forwarders, the last metrics, logs."""
SPARE_S: Final = 5.0
"""Time of a worker to stop beyond that of its parts."""


class WorkerEnded(Exception):
    """A worker ended before it was ready.

    Args:
        worker: Its number.
        status: Its exit status, negative if a signal ended it; None if it could not be started.
    """

    def __init__(self, worker: int, status: int | None) -> None:
        why = "cannot be started" if status is None else f"ended with status {status} before it was ready"
        super().__init__(f"worker {worker} {why}")
        self.status = status


class Workers:
    """The parent's part of a gateway with workers. Make it on the loop.

    Args:
        config: The configuration of the gateway.
        command: Starts a worker.
        clock: The time; by default the system's.
    """

    def __init__(self, config: HostConfig, command: Sequence[str], clock: Clock | None = None) -> None:
        self.config = config
        self.spine = Spine(
            replace(config, listeners=()),
            clock,
            needs_plugins=False,
            not_alive=self.not_alive,
            trouble=self.trouble,
            read_rows=self.metric_rows,
        )
        self.clock, self.outlets = self.spine.clock, self.spine.outlets
        self.outlets.topology = self.topology_rows
        self.loop = asyncio.get_running_loop()
        self.steps = 0
        """The steps of the kill switch, which a worker that starts later takes, too."""
        self.serving = [self.worker(number, command) for number in range(config.gateway.workers)]
        self.former = [self.worker(number, command, True) for number in former_workers(config)]
        self.spine.parts += [
            *self.spine.base,
            Part(stop=self.stop_workers, not_ready=self.not_ready, waits_for=self.running),
        ]

    def worker(self, number: int, command: Sequence[str], is_former: bool = False) -> Worker:
        """A worker that has not been started."""

        def assignment() -> Assignment:
            return Assignment(worker=number, steps=self.steps)

        return Worker(assignment, command, self.clock, is_former)

    @property
    def addresses(self) -> list[str]:
        """The addresses of the listeners, which all workers share."""
        return next((each.addresses for each in self.serving if each.addresses is not None), [])

    async def start(self, stop: asyncio.Event) -> None:
        """Start everything; return when all workers serve, or the event is set.

        The first worker comes alone: what is wrong with the configuration is then said once.

        Raises:
            ConfigError: The endpoint of metrics cannot be opened.
            WorkerEnded: A worker ended before it was ready.
        """
        await self.spine.start()
        first, *others = self.serving
        for group in ([first], others):
            for each in group:
                each.keep_running()
            for each in group:
                await self.ready(each, stop)
            if stop.is_set():
                return
        for each in self.former:
            folder = folder_of(self.config.data_dir, each.number)
            log.info(
                "delivering what a former worker has left; once this worker has ended, its folders can go",
                extra={"gateway_worker": each.number, "directory": str(folder)},
            )
            each.keep_running()

    async def ready(self, worker: Worker, stop: asyncio.Event) -> None:
        """Wait until a worker serves, or the event is set.

        Raises:
            WorkerEnded: It ended instead.
        """
        waits: list[Awaitable[object]] = [worker.changed.wait(), stop.wait()]
        tasks = [asyncio.ensure_future(each) for each in waits]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in tasks:
            each.cancel()
        if worker.addresses is None and not stop.is_set():
            raise WorkerEnded(worker.number, worker.last_status)

    def step_down(self) -> None:
        """Take the next step of the kill switch in all workers."""
        self.steps += 1
        for each in self.serving:
            each.tell({"do": "step"})

    def reload(self, read: Callable[[], HostConfig]) -> None:
        """Let all workers reload the configuration, and load the certificate of the endpoint again."""
        self.spine.certificates.reload(read())
        for each in self.serving:
            if each.addresses is not None and each.process is not None and HANGUP is not None:
                with suppress(ProcessLookupError):
                    each.process.send_signal(HANGUP)

    async def metric_rows(self) -> AsyncIterator[MetricRow]:
        """Yield the metrics of all processes."""
        running = [each for each in (*self.serving, *self.former) if each.addresses is not None]
        for rows in await asyncio.gather(*(each.metric_rows() for each in running)):
            for row in rows:
                yield row
        for row in self.spine.metric_rows():
            yield row
        for row in PROCESSES.rows(self):
            yield row

    def topology_rows(self) -> list[Mapping[str, Any]]:
        """Who uses which topic, of all processes. Called on other threads."""
        asked = asyncio.run_coroutine_threadsafe(self.ask_topology(), self.loop)
        return merged(asked.result(2 * ANSWER_S))

    async def ask_topology(self) -> list[Mapping[str, Any]]:
        """The uses that each worker knows."""
        serving = [each for each in self.serving if each.addresses is not None]
        found = await asyncio.gather(*(each.topology_rows() for each in serving))
        return list(chain.from_iterable(found))

    def problems(self) -> Problems:
        """What is wrong with the workers. Called on other threads."""
        asked = asyncio.run_coroutine_threadsafe(self.ask_all(), self.loop)
        return asked.result(2 * ANSWER_S)

    async def ask_all(self) -> Problems:
        """The first problem of each kind of the workers that serve. One that restarts gets no connections."""
        serving = [each for each in self.serving if each.addresses is not None]
        if not serving:
            return Problems(not_ready="no worker is ready")
        found = await asyncio.gather(*(each.problems() for each in serving))
        return Problems(*(next(filter(None, texts), None) for texts in zip(*found, strict=True)))

    def not_alive(self) -> str | None:
        return self.problems().dead

    def not_ready(self) -> str | None:
        return self.problems().not_ready

    def trouble(self) -> str | None:
        return self.problems().trouble

    async def stop(self) -> None:
        """Stop all workers, at the same time."""
        await self.spine.stop()

    def running(self) -> str:
        """The workers that have not ended."""
        every = (*self.serving, *self.former)
        running = [each.number for each in every if each.process and each.process.returncode is None]
        return f"workers: {', '.join(map(str, running))}"

    async def stop_workers(self) -> None:
        config = self.config
        timeout_s = (config.gateway.drain_ms + STOPS * config.shutdown_timeout_ms) / 1000 + SPARE_S
        await asyncio.gather(*(each.stop(timeout_s) for each in (*self.serving, *self.former)))


PROCESSES = Metrics[Workers]("odradek.gateway")
PROCESSES.gauge(
    "workers",
    "{process}",
    "Workers that serve clients",
    lambda it: sum(each.addresses is not None for each in it.serving),
)
PROCESSES.gauge(
    "former.workers",
    "{process}",
    "Processes that deliver what a worker has left that `gateway.workers` does not have any more",
    lambda it: sum(each.task is not None and not each.task.done() for each in it.former),
)
PROCESSES.counter(
    "worker.restarts",
    "{start}",
    "Starts of a worker that had ended by itself",
    lambda it: {each.number: max(each.starts - 1, 0) for each in (*it.serving, *it.former)},
    by="gateway_worker",
)
