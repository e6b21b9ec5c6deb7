from __future__ import annotations

from uuid import UUID

import crc32c
import pytest

from odradek.telemetry.subscription_id import (
    copy_capacity,
    hash_set_order,
    string_hash,
    subscription_checksum,
    subscription_id,
    uuid_hash,
)
from odradek.wire.uuid_text import uuid_text

ONE = UUID("4e6fb54c-b8e6-4517-889b-e15b99c09c20").bytes
TWO = UUID("00000000-0000-0000-0000-000000000002").bytes
THREE = UUID("b69cc35a-7a54-4790-aa69-cc2bd4ee4538").bytes

LATENCY = "org.apache.kafka.client.producer.partition.latency"
QUEUE = "org.apache.kafka.client.producer.partition.queue."
CLIENTS = [f"org.apache.kafka.{kind}." for kind in ("producer", "consumer", "admin.client")]
FOURTEEN = [f"org.apache.kafka.m{index}" for index in range(14)]
FOURTEEN_IN_JAVA = [f"org.apache.kafka.m{index}" for index in (13, 12, 11, 0, 10, *range(1, 10))]


@pytest.mark.parametrize(
    ("raw", "metrics", "interval_ms", "checksum", "expected"),
    [
        (ONE, [], 300_000, 3569834974, 857069310),
        (ONE, ["*"], 300_000, 1012207395, -611876349),
        (ONE, ["*"], 1000, 848016057, -715571303),
        (ONE, [QUEUE, LATENCY], 30_000, 2352111663, 1809902863),
        (ONE, CLIENTS, 60_000, 3920677033, 241321353),
        (ONE, ["c", "a", "b"], 100, 2717647972, 1177454916),
        (ONE, FOURTEEN, 5000, 1249929945, -1387075591),
        (TWO, [], 300_000, 3569834974, -725132324),
        (TWO, ["*"], 300_000, 1012207395, 1012207393),
        (THREE, [], 300_000, 3569834974, 1720210951),
        (THREE, ["*"], 300_000, 1012207395, -1910897926),
    ],
)
def test_ids_equal_those_of_a_jdk(
    raw: bytes, metrics: list[str], interval_ms: int, checksum: int, expected: int
) -> None:
    found = subscription_checksum(hash_set_order(metrics), interval_ms)

    assert (found, subscription_id(found, raw)) == (checksum, expected)


def test_order_is_that_of_a_java_hash_set() -> None:
    orders = [hash_set_order(metrics) for metrics in (FOURTEEN, [QUEUE, LATENCY], ["c", "b", "a"])]

    assert orders == [FOURTEEN_IN_JAVA, [LATENCY, QUEUE], ["a", "b", "c"]]


def test_uuid_hashes_and_texts_equal_javas() -> None:
    rows = [(uuid_hash(raw), uuid_text(raw)) for raw in (ONE, TWO)]

    assert rows == [(-405631712 & 0xFFFFFFFF, "Tm-1TLjmRReIm-FbmcCcIA"), (2, "AAAAAAAAAAAAAAAAAAAAAg")]


def test_checksum_is_crc32c() -> None:
    assert crc32c.crc32c(b"123456789") == 0xE3069283


@pytest.mark.parametrize(
    ("text", "hash_code"),
    [
        ("", 0),
        ("a", 97),
        ("Aa", 2112),
        ("BB", 2112),
        ("polygenelubricants", 0x80000000),
        ("\U0001f600", 31 * 0xD83D + 0xDE00),
    ],
)
def test_string_hash_is_folded(text: str, hash_code: int) -> None:
    expected = hash_code ^ hash_code >> 16

    assert string_hash(text) == expected


def test_elements_in_the_same_bucket_keep_insertion_order() -> None:
    orders = [hash_set_order(elements) for elements in (["Aa", "BB"], ["BB", "Aa"], ["BB", "Aa", "BB"])]

    assert orders == [["Aa", "BB"], ["BB", "Aa"], ["BB", "Aa"]]


def test_nine_elements_in_one_bucket_double_the_table() -> None:
    # Single characters 16 apart share a bucket of 16; the ninth makes it 32, and every second one moves up.
    elements = [chr(0x100 + 16 * index) for index in range(9)]

    order = hash_set_order(elements)

    assert order == elements[0::2] + elements[1::2]


@pytest.mark.parametrize(("size", "capacity"), [(0, 16), (11, 16), (12, 32), (24, 64), (48, 128)])
def test_copy_of_a_collection_has_javas_capacity(size: int, capacity: int) -> None:
    assert copy_capacity(size) == capacity
