"""One worker of a gateway, as its parent sees it: a process that is kept running, and the channel to it."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from odradek.metrics.metric import MetricRow
from odradek.process.kept_process import KeptProcess
from odradek.process.supervisor import ADDRESS
from odradek.programs.gateway_workers.link import Assignment, line_of
from odradek.waiting.clock import Clock

ANSWER_S: Final = 5.0
"""A worker answers within milliseconds, on a bad day within a second."""
LONGEST_LINE: Final = 64 << 20
GONE: Final[Mapping[str, Any]] = {}
"""The answer of a worker that has ended."""


class Problems(NamedTuple):
    """What is wrong; None stands for nothing."""

    dead: str | None = None
    """Why it counts as dead."""
    not_ready: str | None = None
    """Why it should get no clients."""
    trouble: str | None = None
    """Which plugin does not work. It serves its clients all the same."""


class Worker(KeptProcess):
    """One worker.

    Args:
        assignment: Makes its assignment; called at each start.
        command: Starts a worker.
        clock: The time.
        is_former: Whether it only delivers what a former worker has left, and then ends.
    """

    kind = "worker"

    def __init__(
        self,
        assignment: Callable[[], Assignment],
        command: Sequence[str],
        clock: Clock,
        is_former: bool = False,
    ) -> None:
        self.number = assignment().worker
        super().__init__({"gateway_worker": self.number}, clock)
        self.assignment = assignment
        self.command = command
        self.is_former = is_former
        self.addresses: list[str] | None = None
        """The addresses of its listeners while it serves, else None."""
        self.has_served = False
        self.changed = asyncio.Event()
        """Set when it begins to serve and when it ends."""
        self.last_status: int | None = None
        """The exit status of the process that ended last."""
        self.writer: asyncio.StreamWriter | None = None
        self.reading: asyncio.Task[None] | None = None
        self.answers: dict[int, asyncio.Queue[Mapping[str, Any]]] = {}
        """Of the questions that wait, by their number."""
        self.asked = 0

    async def launch(self) -> asyncio.subprocess.Process:
        ours, theirs = socket.socketpair()
        # only the parent tells the supervisor of the service when it serves and stops
        environment = {key: value for key, value in os.environ.items() if key != ADDRESS}
        try:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    *self.command, stdin=theirs.fileno(), env=environment, start_new_session=True
                )
            reader, self.writer = await asyncio.open_unix_connection(sock=ours, limit=LONGEST_LINE)
        except BaseException:
            ours.close()
            raise
        self.writer.write(self.assignment().line())
        self.reading = asyncio.create_task(self.read(reader, self.writer))
        return process

    async def read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take what the worker says until its end."""
        try:
            while text := await reader.readline():
                message = json.loads(text)
                if "ready" in message:
                    self.addresses, self.has_served = message["ready"], True
                    self.changed.set()
                elif (waiting := self.answers.get(message["id"])) is not None:
                    waiting.put_nowait(message)
        except ConnectionError:
            pass
        finally:
            writer.close()
            self.addresses = None
            for waiting in self.answers.values():
                waiting.put_nowait(GONE)

    def ended(self) -> bool:
        """Take note of the end. A worker that never served will not do better the next time, and a former one
        that ends well has delivered everything.
        """
        self.addresses = self.writer = None
        self.last_status = None if self.process is None else self.process.returncode
        self.changed.set()
        return self.has_served and not (self.is_former and self.last_status == 0)

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message, if the process runs."""
        if self.writer is not None and not self.writer.is_closing():
            self.writer.write(line_of(message))

    async def ask(self, what: str) -> list[Mapping[str, Any]]:
        """The answer of a worker that serves: messages, up to the first without rows; `GONE` if it ends.

        Raises:
            TimeoutError: It does not answer.
        """
        self.asked += 1
        number, answer = self.asked, asyncio.Queue[Mapping[str, Any]]()
        self.answers[number] = answer
        self.tell({"ask": what, "id": number})
        found: list[Mapping[str, Any]] = []
        try:
            async with asyncio.timeout(ANSWER_S):
                while not found or found[-1].get("rows"):
                    found.append(await answer.get())
        finally:
            del self.answers[number]
        return found

    async def problems(self) -> Problems:
        """What is wrong with this worker."""
        try:
            (answer,) = await self.ask("state")
        except TimeoutError:
            return Problems(f"worker {self.number}: the event loop has not answered for {ANSWER_S:g} s")
        not_ready, trouble = answer.get("not_ready"), answer.get("trouble")
        name = f"worker {self.number}: "
        return Problems(None, not_ready and name + not_ready, trouble and name + trouble)

    async def topology_rows(self) -> list[Mapping[str, Any]]:
        """Who uses which topic; none if it does not answer."""
        try:
            answers = await self.ask("topology")
        except TimeoutError:
            return []
        return [row for answer in answers for row in answer.get("rows", ())]

    async def metric_rows(self) -> list[MetricRow]:
        """Its metrics, with its number as an attribute; none if it does not answer."""
        label = {"gateway_worker": str(self.number)}
        try:
            answers = await self.ask("metrics")
        except TimeoutError:
            return []
        return [
            MetricRow(name, {**attributes, **label}, value)
            for answer in answers
            for name, attributes, value in answer.get("rows", ())
        ]
