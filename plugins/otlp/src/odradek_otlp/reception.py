"""Checks a request over HTTP or gRPC, stores its metrics, and decides on the answer."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
import zlib
from collections.abc import Sequence
from typing import Final, Protocol

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceResponse,
)

from odradek.endpoints import read_tokens
from odradek.otlp import NotOtlp, Sender, data_points, metrics_of_json, otlp_records
from odradek.plugin import Intake, TelemetryRecord
from odradek_otlp.refused_request import (
    JSON_TOO_LARGE,
    LATE,
    MALFORMED,
    NO_MEMORY,
    NO_ROOM,
    NO_TOKEN,
    TOKENS_UNREADABLE,
    TOO_LARGE,
    TOO_MANY,
    Limit,
    RefusedRequest,
)
from odradek_otlp.source_settings import SourceSettings
from odradek_otlp.unfinished_requests import Attempt, UnfinishedRequests

log = logging.getLogger(__name__)

GZIP: Final = 31
"""``wbits`` of a gzip stream."""
MAX_MEMBERS: Final = 128
"""Of a gzip stream. Encoders write one, or one for each flush; thousands of empty ones are an attack."""
ROOM_S: Final = 2.0
"""A request waits this long for room in the log, then its sender tries again."""
WAIT_S: Final = 0.05
ANONYMOUS: Final = "User:ANONYMOUS"
KNOWN: Final = "User:otlp"
ACCEPTED: Final = "accepted"
PARTIAL: Final = "partial"
ABANDONED: Final = "abandoned"
"""Outcomes for the metrics, besides those of `Reason`."""


class Export(Protocol):
    """A request, before its body is read."""

    @property
    def authorization(self) -> str:
        """The value of the header or metadata; empty without one."""

    @property
    def peer(self) -> tuple[str, int]:
        """Address and port of the sender."""

    @property
    def announced_bytes(self) -> int | None:
        """The size of the body, or a limit of it, that is known before it is read."""

    @property
    def is_json(self) -> bool:
        """Otherwise the body is protobuf."""

    async def body(self, limit: Limit) -> bytes:
        """The body as it was sent.

        Raises:
            RefusedRequest: It is larger, or incomplete.
        """

    def is_gzip(self, body: bytes) -> bool:
        """Whether the body has to be decompressed."""


class Reception:
    """The requests of one call of ``run``. All bounds of memory are here."""

    def __init__(self, settings: SourceSettings, intake: Intake) -> None:
        self.settings = settings
        self.intake = intake
        self.held_bytes = 0
        self.receiving = 0
        """Requests whose bodies are being read."""
        self.storing: set[asyncio.Task[None]] = set()
        """Requests whose records are being stored, also for senders that left."""
        self.unfinished = UnfinishedRequests()

    async def export(self, request: Export) -> ExportMetricsServiceResponse:
        """Take a request; count its outcome.

        Raises:
            RefusedRequest: It is not accepted.
        """
        try:
            response = await self.taken(request)
        except RefusedRequest as refused:
            self.intake.answered(refused.reason.outcome)
            raise
        except asyncio.CancelledError:
            self.intake.answered(ABANDONED)
            raise
        self.intake.answered(PARTIAL if response.HasField("partial_success") else ACCEPTED)
        return response

    async def taken(self, request: Export) -> ExportMetricsServiceResponse:
        sender = self.sender_of(request)
        if self.receiving + len(self.storing) >= self.settings.requests_max:
            raise RefusedRequest(TOO_MANY, "source.requests.max is reached")
        self.receiving += 1
        try:
            data, records = await self.read(request, sender)
        finally:
            self.receiving -= 1
        return await self.stored(data, records)

    async def read(self, request: Export, sender: Sender) -> tuple[bytes, list[TelemetryRecord]]:
        """The body as protobuf, and its records. Its memory counts from the announced size on."""
        limit, announced = self.limit(request), request.announced_bytes
        if announced is not None and announced > limit.most_bytes:
            raise limit.exceeded()
        claimed = await self.claim_in_time(limit.most_bytes if announced is None else announced)
        try:
            body = await self.body(request, limit)
            opened = decompressed(body, limit) if request.is_gzip(body) else body
            claimed += self.claim(max(0, len(opened) - claimed))
            try:
                data = metrics_of_json(opened) if request.is_json else opened
                return data, self.records(data, sender)
            except NotOtlp as error:
                self.intake.unreadable(1)
                raise RefusedRequest(MALFORMED, f"not OTLP metrics: {error}") from error
        finally:
            self.held_bytes -= claimed

    def records(self, data: bytes, sender: Sender) -> list[TelemetryRecord]:
        settings = self.settings
        now_ms = time.time_ns() // 1_000_000
        return otlp_records(data, sender, now_ms, settings.interval_ms, resources_max=settings.resources_max)

    def limit(self, request: Export) -> Limit:
        """The limit of the body, and of what it decompresses to."""
        settings = self.settings
        if request.is_json and settings.json_max_bytes < settings.request_max_bytes:
            return Limit(settings.json_max_bytes, JSON_TOO_LARGE, "source.json.max.bytes")
        return Limit(settings.request_max_bytes, TOO_LARGE, "source.request.max.bytes")

    async def body(self, request: Export, limit: Limit) -> bytes:
        limit_s = self.settings.request_timeout_ms / 1000
        try:
            async with asyncio.timeout(limit_s):
                return await request.body(limit)
        except TimeoutError:
            text = f"the body took longer than source.request.timeout.ms ({limit_s:g} s)"
            raise RefusedRequest(LATE, text) from None

    def sender_of(self, request: Export) -> Sender:
        """The sender, with its token checked.

        Raises:
            RefusedRequest: It has no token that is known.
        """
        settings = self.settings
        has_certificate = settings.tls is not None and settings.tls.client_ca is not None
        principal = KNOWN if has_certificate else ANONYMOUS
        if settings.token_file is not None:
            scheme, _, token = request.authorization.partition(" ")
            given = token.strip().encode("utf-8", "surrogateescape")
            try:
                tokens = read_tokens(settings.token_file)
            except (OSError, ValueError) as error:
                log.error("tokens of the OTLP source cannot be read", extra={"problem": str(error)})
                raise RefusedRequest(TOKENS_UNREADABLE, "tokens cannot be read") from error
            known = [hmac.compare_digest(given, each) for each in tokens]
            if scheme.lower() != "bearer" or not any(known):
                raise RefusedRequest(NO_TOKEN, "a valid bearer token is required")
            principal = KNOWN
        address, port = request.peer
        return Sender(
            address=address, port=port, principal=principal, security_protocol=settings.security_protocol
        )

    async def claim_in_time(self, size_bytes: int) -> int:
        """As `claim`, but wait for other requests to end."""
        deadline_s = time.monotonic() + ROOM_S
        while self.held_bytes + size_bytes > self.settings.buffer_max_bytes and time.monotonic() < deadline_s:
            await asyncio.sleep(WAIT_S)
        return self.claim(size_bytes)

    def claim(self, size_bytes: int) -> int:
        """Count the memory of a request; returns the size.

        Raises:
            RefusedRequest: Other requests hold the memory.
        """
        if self.held_bytes + size_bytes > self.settings.buffer_max_bytes:
            raise RefusedRequest(NO_MEMORY, "source.buffer.max.bytes is reached")
        self.held_bytes += size_bytes
        return size_bytes

    async def stored(self, data: bytes, records: Sequence[TelemetryRecord]) -> ExportMetricsServiceResponse:
        """Store records, also if the sender leaves meanwhile; return the answer.

        Raises:
            RefusedRequest: The log has no room.
        """
        attempt = await self.unfinished.resumed(data) or Attempt(bytearray(len(records)))
        task = asyncio.get_running_loop().create_task(self.store(attempt, records))
        self.held_bytes += len(data)
        self.storing.add(task)
        task.add_done_callback(lambda done: self.release(done, len(data)))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            attempt.task = task
            self.unfinished.add(data, attempt)
            raise
        except RefusedRequest:
            if any(attempt.settled):
                self.unfinished.add(data, attempt)
            raise
        response = ExportMetricsServiceResponse()
        if attempt.refused_points:
            response.partial_success.CopyFrom(
                ExportMetricsPartialSuccess(
                    rejected_data_points=attempt.refused_points, error_message=attempt.refusal
                )
            )
        return response

    def release(self, task: asyncio.Task[None], size_bytes: int) -> None:
        self.held_bytes -= size_bytes
        self.storing.discard(task)
        if not task.cancelled():
            task.exception()  # an abandoned request has no sender to tell

    async def store(self, attempt: Attempt, records: Sequence[TelemetryRecord]) -> None:
        """Store the records that are not settled yet.

        Raises:
            RefusedRequest: The log has no room, or the host stops. The attempt has what was settled.
        """
        numbers = {id(record): index for index, record in enumerate(records)}
        left = [record for record, settled in zip(records, attempt.settled, strict=True) if not settled]
        deadline_s = time.monotonic() + ROOM_S
        while left:
            try:
                receipt = await self.intake.store(left)
            except RuntimeError as error:
                raise RefusedRequest(NO_ROOM, "the host stops") from error
            still = {id(record) for record in receipt.left}
            for record in left:
                attempt.settled[numbers[id(record)]] = id(record) not in still
            for each in receipt.refused:
                attempt.refused_points += max(1, data_points(each.record.payload.data))
                attempt.refusal = attempt.refusal or each.reason
            left = receipt.left
            if left:
                if time.monotonic() > deadline_s:
                    raise RefusedRequest(NO_ROOM, "the log has no room")
                await asyncio.sleep(WAIT_S)

    async def close(self) -> None:
        """Cancel what is still being stored."""
        for task in self.storing:
            task.cancel()
        if self.storing:
            await asyncio.wait(set(self.storing))


def decompressed(body: bytes, limit: Limit) -> bytes:
    """The content of a gzip stream, of one or several members (RFC 1952, 2.2).

    Raises:
        RefusedRequest: It is not gzip, or larger than allowed.
    """
    parts: list[bytes] = []
    size_bytes = 0
    for _ in range(MAX_MEMBERS):
        member = zlib.decompressobj(GZIP)
        try:
            parts.append(member.decompress(body, limit.most_bytes - size_bytes + 1))
        except zlib.error as error:
            where = "the rest of the body" if len(parts) else "the body"
            raise RefusedRequest(MALFORMED, f"{where} is not gzip: {error}") from error
        size_bytes += len(parts[-1])
        if size_bytes > limit.most_bytes:
            raise limit.exceeded(" when decompressed")
        if not member.eof:
            raise RefusedRequest(MALFORMED, "the gzip stream of the body is cut off")
        body = member.unused_data
        if not body:
            return b"".join(parts)
    raise RefusedRequest(MALFORMED, f"the gzip stream of the body has more than {MAX_MEMBERS} members")
