from __future__ import annotations

import pytest

from odradek.client.partitioner import murmur2, partition_of


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_that_of_the_java_producer(data: bytes, code: int) -> None:
    """The expectations of Kafka's UtilsTest."""
    assert murmur2(data) == code & 0xFFFFFFFF


def test_a_partition_is_the_positive_hash_modulo_the_number_of_partitions() -> None:
    assert partition_of(b"21", 3) == (-973932308 & 0x7FFFFFFF) % 3
