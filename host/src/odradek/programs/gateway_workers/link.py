"""A worker's end of the channel to its parent: JSON, one object a line, on standard input.

The parent begins with an `Assignment`. Then it asks (``{"ask": "metrics", "id": 7}``, ``{"ask": "state",
"id": 8}``) or tells the worker to take a step of the kill switch (``{"do": "step"}``). The worker says
``{"ready": [ADDRESS, ...]}`` once, and answers. The channel ends with either process.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Final, Protocol, Self

from odradek.metrics.metric import MetricRow
from odradek.plugin.config import ConfigError

log = logging.getLogger(__name__)

STDIN: Final = 0
ROWS_PER_LINE: Final = 500
"""Rows that are read and sent before other tasks of the loop run: a millisecond or two."""
MOST_ASSIGNMENT_BYTES: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The part of one worker."""

    worker: int
    """From 0. From ``gateway.workers`` on it has no listeners, and only delivers what is in its folder."""
    steps: int = 0
    """The steps that the kill switch has taken."""

    def line(self) -> bytes:
        """As it is sent."""
        return line_of(asdict(self))

    @classmethod
    def received(cls, channel: socket.socket) -> Self:
        """Wait for it; reads nothing beyond it.

        Raises:
            ConfigError: Something else comes, because no parent has started this process.
        """
        text = b""
        try:
            while not text.endswith(b"\n") and len(text) < MOST_ASSIGNMENT_BYTES:
                text += channel.recv(1) or b"\n"
            return cls(**json.loads(text))
        except (OSError, ValueError, TypeError) as error:
            raise ConfigError("--worker", "is for processes that odradek gateway starts itself") from error


class Asked(Protocol):
    """A program, as far as the parent asks about it."""

    def metric_rows(self) -> Iterable[MetricRow]: ...
    def topology_rows(self) -> Iterable[Mapping[str, Any]]: ...
    def not_ready(self) -> str | None: ...
    def trouble(self) -> str | None: ...


def line_of(message: dict[str, Any]) -> bytes:
    """A message as it is sent."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def parent_channel() -> socket.socket:
    """The channel, taken from standard input.

    Raises:
        ConfigError: It is not a socket, because no parent has started this process.
    """
    try:
        return socket.socket(fileno=os.dup(STDIN))
    except OSError as error:
        raise ConfigError("--worker", "is for processes that odradek gateway starts itself") from error


class ParentLink:
    """Serves the parent until it is gone. Make it on the loop of the worker.

    Args:
        channel: From `parent_channel`.
        asked: What the parent asks about.
        step: Takes a step of the kill switch.
        gone: Called when the parent is gone.
    """

    def __init__(
        self, channel: socket.socket, asked: Asked, step: Callable[[], None], gone: Callable[[], None]
    ) -> None:
        self.channel = channel
        self.asked = asked
        self.step = step
        self.gone = gone
        self.writer: asyncio.StreamWriter | None = None
        self.task: asyncio.Task[None] | None = None

    async def start(self, addresses: list[str]) -> None:
        """Tell the parent that this worker is ready, and serve it from now on."""
        reader, self.writer = await asyncio.open_unix_connection(sock=self.channel)
        self.writer.write(line_of({"ready": addresses}))
        self.task = asyncio.create_task(self.serve(reader, self.writer))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while text := await reader.readline():
                await self.answer(json.loads(text), writer)
        except ConnectionError:
            pass
        finally:
            self.gone()

    async def answer(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        """Answer one message of the parent."""
        match message:
            case {"do": "step"}:
                self.step()
            case {"ask": "state", "id": number}:
                not_ready, trouble = self.asked.not_ready(), self.asked.trouble()
                writer.write(line_of({"id": number, "not_ready": not_ready, "trouble": trouble}))
            case {"ask": "metrics", "id": number}:
                await self.send(number, writer, self.asked.metric_rows)
            case {"ask": "topology", "id": number}:
                await self.send(number, writer, self.asked.topology_rows)
        await writer.drain()

    async def send(
        self, number: int, writer: asyncio.StreamWriter, read: Callable[[], Iterable[object]]
    ) -> None:
        """Answer with all rows, and with none if they cannot be read."""
        try:
            await self.send_rows(number, writer, iter(read()))
        except ConnectionError:
            raise
        except Exception:
            log.exception("rows cannot be read")  # the worker serves its clients all the same
        writer.write(line_of({"id": number, "rows": []}))

    async def send_rows(self, number: int, writer: asyncio.StreamWriter, rows: Iterator[object]) -> None:
        """Answer with all rows, in small steps that do not block the loop."""
        while some := list(islice(rows, ROWS_PER_LINE)):
            writer.write(line_of({"id": number, "rows": some}))
            await writer.drain()
            await asyncio.sleep(0)

    async def close(self) -> None:
        """End the channel."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)
        if self.writer is not None:
            self.writer.close()
