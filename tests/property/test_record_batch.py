"""Any records can be read back; any damage is an ``ApiError``, a ``WireError`` or a batch, and nothing
else.
"""

from __future__ import annotations

import struct

from crc32c import crc32c
from hypothesis import example, given
from hypothesis import strategies as st

from odradek.wire.api_error import ApiError
from odradek.wire.batch_check import check_batch
from odradek.wire.compression import Codec, compress, decompress
from odradek.wire.errors import WireError
from odradek.wire.limits import INT64_MAX
from odradek.wire.record import NO_TIMESTAMP, Record, parse_records
from odradek.wire.record_batch import HEADER_BYTES, build_batch, records
from odradek.wire.record_scan import RecordScan, scan_records, walk_in_python, walk_records

MAX_BYTES = 1 << 20
nullable_bytes = st.none() | st.binary(max_size=80)
headers = st.lists(st.tuples(st.text(max_size=10), nullable_bytes), max_size=3).map(tuple)
record_lists = st.lists(
    st.builds(Record, nullable_bytes, nullable_bytes, st.integers(-1, 1 << 62), headers),
    min_size=1,
    max_size=8,
)
codecs = st.sampled_from(list(Codec))
mutations = st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=6)


def mutated(data: bytes, changes: list[tuple[int, int]], keep_bytes: int) -> bytes:
    other = bytearray(data)
    for position, byte in changes:
        other[position % len(other)] = byte
    return bytes(other[: max(0, len(other) - keep_bytes)])


@given(record_lists, codecs, st.integers(0, 1 << 40))
def test_any_records_are_read_back(written: list[Record], codec: Codec, base_offset: int) -> None:
    batch = build_batch(written, codec=codec, base_offset=base_offset)

    found = list(records(batch))

    assert found == [record._replace(offset=base_offset + index) for index, record in enumerate(written)]


@given(record_lists, codecs, mutations, st.integers(0, 40), st.booleans())
def test_a_damaged_batch_is_refused_or_read(
    written: list[Record], codec: Codec, changes: list[tuple[int, int]], cut_bytes: int, renew_crc: bool
) -> None:
    data = mutated(build_batch(written, codec=codec), changes, cut_bytes)
    if renew_crc and len(data) >= HEADER_BYTES:
        data = data[:8] + struct.pack(">i", len(data) - 12) + data[12:]
        data = data[:17] + crc32c(data[21:]).to_bytes(4, "big") + data[21:]

    outcome = read(data)

    assert outcome in {"refused", "malformed", "read"}


def read(data: bytes) -> str:
    try:
        header = check_batch(data)
        found = list(records(data, header, MAX_BYTES))
    except ApiError:
        return "refused"
    except WireError:
        return "malformed"
    assert len(found) == header.record_count
    return "read"


@given(
    st.binary(max_size=2000), st.integers(0, 64), codecs, mutations, st.integers(0, 40), st.integers(0, 3000)
)
def test_a_damaged_stream_gives_bounded_content_or_a_wire_error(
    unit: bytes, repeats: int, codec: Codec, changes: list[tuple[int, int]], cut_bytes: int, max_bytes: int
) -> None:
    packed = compress(codec, unit * repeats)
    data = mutated(packed, changes, cut_bytes) if packed else packed

    content_bytes = content_bytes_or_none(codec, data, max_bytes)

    assert content_bytes is None or content_bytes <= max_bytes


@given(st.binary(max_size=200), codecs)
def test_any_bytes_give_bounded_content_or_a_wire_error(data: bytes, codec: Codec) -> None:
    max_bytes = 4096

    content_bytes = content_bytes_or_none(codec, data, max_bytes)

    assert content_bytes is None or content_bytes <= max_bytes


def content_bytes_or_none(codec: Codec, data: bytes, max_bytes: int) -> int | None:
    try:
        return len(decompress(codec, data, max_bytes))
    except WireError:
        return None


@given(record_lists, mutations, st.integers(0, 40), st.integers(-1, 1), st.integers(-1, 1 << 62))
def test_a_scan_accepts_what_can_be_read_and_nothing_else(
    written: list[Record], changes: list[tuple[int, int]], cut_bytes: int, more: int, base_timestamp_ms: int
) -> None:
    body = mutated(build_batch(written)[HEADER_BYTES:], changes, cut_bytes)
    count = max(1, len(written) + more)

    scan = scan_or_none(body, count, base_timestamp_ms)

    assert scan == figures_or_none(body, count, base_timestamp_ms)


def scan_or_none(body: bytes | memoryview, count: int, base_timestamp_ms: int) -> RecordScan | None:
    """The scan, after a comparison of the two ways to walk over records."""
    for most_headers in (INT64_MAX, 3, 0):
        arguments = body, count, base_timestamp_ms, most_headers
        assert walk_records(*arguments) == walk_in_python(*arguments)
    try:
        return scan_records(body, count, base_timestamp_ms)
    except WireError:
        return None


def figures_or_none(body: bytes, count: int, base_timestamp_ms: int) -> RecordScan | None:
    """The figures of a scan, computed from the records themselves."""
    try:
        found = list(parse_records(body, count, 0, base_timestamp_ms))
    except WireError:
        return None
    times_ms = [record.timestamp_ms for record in found]
    return RecordScan(
        max_timestamp_ms=max(times_ms),
        min_timestamp_ms=min((each for each in times_ms if each != NO_TIMESTAMP), default=INT64_MAX),
        has_null_key=any(record.key is None for record in found),
        consecutive=[record.offset for record in found] == list(range(count)),
        headers=sum(len(record.headers) for record in found),
    )


@given(
    st.builds(Record, nullable_bytes, nullable_bytes, st.just(0)),
    st.lists(st.sampled_from([0, 1, 63, 64, 70, 8_191, 9_000]), min_size=1, max_size=6),
    st.integers(1, 300),
    mutations,
    st.integers(0, 10),
)
@example(Record(b"k", b"v" * 100), [0], 9_000, [], 0)
@example(Record(b"k", b"v" * 9_000), [70], 100, [], 0)
def test_a_scan_accepts_records_of_one_shape_if_they_can_be_read(
    record: Record, times_ms: list[int], count: int, changes: list[tuple[int, int]], cut_bytes: int
) -> None:
    written = [record._replace(timestamp_ms=times_ms[index % len(times_ms)]) for index in range(count)]
    whole = build_batch(written)[HEADER_BYTES:]
    body = mutated(whole, changes, cut_bytes)

    scans = [scan_or_none(each, count, 1_000) for each in (whole, body, memoryview(body))]

    assert scans == [figures_or_none(each, count, 1_000) for each in (whole, body, body)]
