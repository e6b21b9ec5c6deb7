"""The latest pushes of a client, read from the telemetry topic once more and decoded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from odradek.client.admin import AdminClient
from odradek.client.errors import RequestFailed
from odradek.client.fetch import Reader, Received
from odradek.plugin import TelemetryRecord
from odradek.topic import MalformedTelemetry
from odradek.topic.telemetry_topic import CODECS
from odradek_console.engine.client_entry import Places
from odradek_console.json_form import JsonRow
from odradek_console.pictures import error_name
from odradek_console.reading.push_points import DecodedPush, decoded_push
from odradek_console.reading.records import decoded

MOST_BYTES: Final = 16 << 20
MOST_S: Final = 5.0
ONE_BATCH: Final = 1
"""Bytes of a request: a broker sends the first batch anyway, and no further one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushRow(JsonRow):
    """A push."""

    partition: int
    offset: int
    received_ms: int
    size: int
    """Bytes without compression, with the labels that the host has added."""
    codec: str
    """The compression that the client used."""
    error: str
    """The name of the error that the client was told; empty if there was none."""
    terminating: bool
    interval_ms: int
    subscription_id: int
    api_version: int
    address: str
    port: int
    node_id: int
    decoded: DecodedPush


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushes(JsonRow):
    """The latest pushes, the newest first."""

    pushes: tuple[PushRow, ...]
    notes: tuple[str, ...]
    """Why there are not more."""


def read_pushes(
    admin: AdminClient,
    topic: str,
    places: Places,
    key: str,
    most_bytes: int = MOST_BYTES,
    most_s: float = MOST_S,
    now_s: Callable[[], float] = time.monotonic,
) -> Pushes:
    """Read the pushes at some places, the newest first, until the bytes or the time are used up.

    Args:
        admin: The client.
        topic: The telemetry topic.
        places: The positions.
        key: The client instance whose pushes they are.
        most_bytes: Bytes of record batches, with those of other clients in them.
        most_s: Seconds.
        now_s: A monotonic clock.

    Raises:
        ClientError: The topic cannot be read.
    """
    (described,) = admin.describe_topics([topic])
    if places.topic_id not in (described.topic_id.hex(), topic):
        return Pushes(pushes=(), notes=("The topic was created again since its last push.",))
    deadline_s, left = now_s() + most_s, most_bytes
    rows: list[PushRow] = []
    notes: list[str] = []
    for offset in reversed(places.offsets):
        if left <= 0:
            notes.append(f"Older pushes were not read: {most_bytes >> 20} MiB were read already.")
            break
        if now_s() > deadline_s:
            notes.append(f"Older pushes were not read: it took longer than {most_s:g} s.")
            break
        try:
            found = read_one(admin, topic, places.partition, offset)
        except RequestFailed as error:
            if error.code.name != "OFFSET_OUT_OF_RANGE":
                raise
            notes.append("Older pushes are no longer in the topic.")
            break
        if found is not None:
            left -= found.batch.size_bytes
            rows += pushes_of(found, key)
    return Pushes(pushes=tuple(rows), notes=tuple(notes))


def read_one(admin: AdminClient, topic: str, partition: int, offset: int) -> Received | None:
    """The record at an offset; None if there is none."""
    reader = Reader(admin.cluster, {(topic, partition): offset}, max_bytes=ONE_BATCH)
    found = next(iter(reader.poll(0)), None)
    if reader.refusal is not None:
        raise reader.refusal
    return found if found is not None and found.record.offset == offset else None


def pushes_of(received: Received, key: str) -> Iterator[PushRow]:
    """The push in a record, if it is one of the client."""
    if received.record.key != key.encode():
        return
    try:
        push = decoded(received)
    except MalformedTelemetry:
        return
    yield push_row(push, received.partition[1], received.record.offset)


def push_row(push: TelemetryRecord, partition: int, offset: int) -> PushRow:
    connection = push.context.connection
    return PushRow(
        partition=partition,
        offset=offset,
        received_ms=push.context.received_ms,
        size=len(push.payload.data),
        codec=CODECS[push.codec],
        error=error_name(push.payload.refused),
        terminating=push.payload.terminating,
        interval_ms=push.push_interval_ms,
        subscription_id=push.subscription_id,
        api_version=push.context.api_version,
        address=connection.client_address,
        port=connection.client_port,
        node_id=connection.node_id,
        decoded=decoded_push(push.payload.data),
    )
