"""Messages with records that are still in files."""

from __future__ import annotations

import pytest

from odradek.wire.codec import decode, encode, writer
from odradek.wire.errors import WireError
from odradek.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from odradek.wire.parts import Parts, RecordSlice

VERSIONS = range(FetchResponse.VERSIONS.first, FetchResponse.VERSIONS.last + 1)


class Slice(RecordSlice):
    """A slice that notes whether it was read."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.was_read = False

    def __len__(self) -> int:
        return len(self.content)

    def __bytes__(self) -> bytes:
        return self.read(0, len(self.content))

    def read(self, start: int, length: int) -> bytes:
        self.was_read = True
        return self.content[start : start + length]


def response(*records: bytes | Slice) -> FetchResponse:
    partitions = [PartitionData(partition_index=index, records=each) for index, each in enumerate(records)]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_message_has_the_same_bytes_with_and_without_slices(version: int) -> None:
    slices = Slice(b"b" * 200), Slice(b"d" * 30_000)
    sent = writer(FetchResponse, version)(response(b"a", slices[0], b"c", slices[1]))

    in_memory = encode(response(b"a", slices[0].content, b"c", slices[1].content), version)
    was_read = [each.was_read for each in slices]

    assert isinstance(sent, Parts)
    assert was_read == [False, False]
    assert (len(sent), bytes(sent)) == (len(in_memory), in_memory)
    assert [piece for piece in sent.pieces if not isinstance(piece, bytes)] == list(slices)
    assert decode(FetchResponse, version, bytes(sent)).responses[0].partitions[3].records == b"d" * 30_000


@pytest.mark.parametrize("version", VERSIONS)
def test_encode_reads_slices(version: int) -> None:
    assert encode(response(Slice(b"abc")), version) == encode(response(b"abc"), version)


def test_a_beginning_is_put_in_front() -> None:
    part = Slice(b"cd")
    whole = b"ab" + Parts([part, b"ef"])

    assert isinstance(whole, Parts)
    assert (len(whole), part.was_read, bytes(whole)) == (6, False, b"abcdef")


def test_records_of_another_type_are_refused() -> None:
    with pytest.raises(WireError):
        encode(response("text"), 12)  # type: ignore[arg-type]
