"""The same bytes to the host's readers and to Kafka's own: both take them or both refuse them, and what they
read is the same. A broker closes the connection of a client whose request it cannot read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import pytest

from integration.java.jvm import Jvm
from odradek.wire.codec import MAX_ELEMENTS, decode, encode
from odradek.wire.errors import WireError
from odradek.wire.header import RequestHeader, flexible_request_header, request_header
from odradek.wire.messages.delete_groups import DeleteGroupsRequest
from odradek.wire.messages.fetch import FetchRequest
from odradek.wire.messages.list_groups import ListGroupsRequest
from odradek.wire.varint import MAX_STRING, MAX_TAGS, varint
from random_messages import MessageMaker, declared_versions
from support.headers import read_request_header

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]

HEAD_BYTES = 8
"""API key, version and correlation id, which stay as they are."""
EACH = 25
KAFKA_MOST_ELEMENTS = 1_000_000
"""Of one array."""
REFUSED, UNWRITABLE = "refused", "?"
ELSEWHERE = ("unknown elements", "UNKNOWN elements", "non-nullable field metrics ")
"""What Kafka finds while it reads, and a handler finds here; and the null of librdkafka, which is read."""


class Frame(NamedTuple):
    """A request of one API, which may be broken."""

    request: type[Any]
    version: int
    data: bytes


def whole(request: Any, version: int) -> bytes:
    """A request that is as it should be."""
    header = RequestHeader(request.API_KEY, version, 7, "c")
    return request_header(header, flexible_request_header(request, version)) + encode(request, version)


def mutated(data: bytes, chance: Random) -> bytes:
    """The request with one to three changes."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 3))):
        at = chance.randint(HEAD_BYTES, len(changed))
        taken = chance.choice((0, 0, 1, 1, 1, 2, 8))
        changed[at : at + taken] = chance.choice(
            (b"", b"\0", b"\1", b"\x7f", b"\x80", b"\xff", chance.randbytes(1), chance.randbytes(taken))
        )
    return bytes(changed[: chance.choice((None, None, None, -1))])


def mutated_frames(chance: Random) -> Iterator[Frame]:
    """Requests of every API in every version."""
    maker = MessageMaker(chance)
    for request, version in declared_versions():
        if request.__name__.endswith("Request"):
            for _ in range(EACH):
                yield Frame(
                    request, version, mutated(whole(maker.message(request, version), version), chance)
                )


def named(client_id: bytes) -> Frame:
    """A request of a client."""
    head = struct.pack(">hhih", ListGroupsRequest.API_KEY, 0, 7, len(client_id))
    return Frame(ListGroupsRequest, 0, head + client_id)


def strange_names(chance: Random) -> Iterator[Frame]:
    """Client ids of bytes that begin, continue or break a character."""
    alphabet = bytes.fromhex("41 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ed ef f0 f1 f4 f5 f8 ff")
    return (named(bytes(chance.choices(alphabet, k=chance.randint(1, 9)))) for _ in range(3_000))


def sizes() -> Iterator[Frame]:
    """Sizes at the limits of Kafka."""
    fetch = whole(FetchRequest(), 15)[:-1]
    for count in (MAX_TAGS, MAX_TAGS + 1):
        yield Frame(FetchRequest, 15, fetch + varint(count) + b"\x64\0" * count)
        at = fetch.index(b"c\0") + 1
        yield Frame(
            FetchRequest, 15, fetch[:at] + varint(count) + b"\x64\0" * count + fetch[at + 1 :] + b"\0"
        )
    for size in (MAX_STRING, MAX_STRING + 1):
        text = varint(size + 1) + b"x" * size
        yield Frame(DeleteGroupsRequest, 2, whole(DeleteGroupsRequest(), 2)[:-2] + b"\2" + text + b"\0")
    for count in (MAX_ELEMENTS, KAFKA_MOST_ELEMENTS + 1):
        groups = varint(count + 1) + b"\1" * count
        yield Frame(DeleteGroupsRequest, 2, whole(DeleteGroupsRequest(), 2)[:-2] + groups + b"\0")


def theirs(jvm: Jvm, frames: Sequence[Frame]) -> list[str]:
    """What Kafka makes of frames."""
    done = jvm.run("odradek.RequestReader", stdin="\n".join(frame.data.hex() for frame in frames))
    assert done.status == 0, done.err
    return done.out.splitlines()


def read(frame: Frame, data: bytes) -> tuple[str, Any] | None:
    """The client id and what the host reads; None if it refuses. Kafka's null is the empty client id."""
    request, version, _ = frame
    try:
        header, start = read_request_header(data, 0, flexible_request_header(request, version))
        message = decode(request, version, data, start)
    except WireError:
        return None
    return header.client_id or "", encode(message, version)


def read_again(frame: Frame, line: str) -> tuple[str, Any] | None:
    """What Kafka has read: unknown tags, which it writes again, are left out. What it has read and
    cannot write is only known to be read.
    """
    if line.startswith(REFUSED):
        return None
    client_id, body = line.split(" ")
    if body == UNWRITABLE:
        return read(frame, frame.data) or (client_id, b"?")
    request, version, _ = frame
    return bytes.fromhex(client_id).decode(), encode(decode(request, version, bytes.fromhex(body)), version)


def differences(jvm: Jvm, frames: Sequence[Frame]) -> list[Any]:
    lines = theirs(jvm, frames)
    assert len(lines) == len(frames)
    return [
        (frame.request.__name__, frame.version, frame.data[:500].hex(), line[:500])
        for frame, line in zip(frames, lines, strict=True)
        if read(frame, frame.data) != read_again(frame, line)
        and not any(words in line for words in ELSEWHERE)
    ]


def test_what_kafka_reads_is_read_and_what_it_refuses_is_refused(newest_jvm: Jvm) -> None:
    frames = [*mutated_frames(Random(1)), *sizes()]

    assert differences(newest_jvm, frames) == []
    taken = sum(read(frame, frame.data) is not None for frame in frames)
    assert len(frames) / 10 < taken < len(frames) * 9 / 10


def test_text_that_is_not_utf_8_is_read_as_in_kafka(newest_jvm: Jvm) -> None:
    assert differences(newest_jvm, list(strange_names(Random(2)))) == []


def test_numbers_of_more_than_31_bits_and_many_elements_are_refused_and_not_by_kafka(newest_jvm: Jvm) -> None:
    """The differences that reference/protocol-coverage.md lists."""
    groups = whole(DeleteGroupsRequest(), 2)[:-2]
    more = MAX_ELEMENTS + 1
    frames = [
        Frame(DeleteGroupsRequest, 2, groups + varint(more + 1) + b"\1" * more + b"\0"),
        Frame(DeleteGroupsRequest, 2, groups + bytes.fromhex("81 80 80 80 10") + b"\0"),
        Frame(FetchRequest, 15, whole(FetchRequest(), 15)[:-1] + bytes.fromhex("01 ff ff ff ff 0f 00")),
    ]

    assert [read(frame, frame.data) for frame in frames] == [None, None, None]
    assert not [line for line in theirs(newest_jvm, frames) if line.startswith(REFUSED)]
