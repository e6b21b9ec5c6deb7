"""The loads of the benches are the same for a seed, and nearly the same for others."""

from __future__ import annotations

from statistics import fmean

import pytest
import zstandard
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from bench import loads
from bench.records import ROWS

SEEDS = range(3)


def near(figures: list[float], part: float) -> bool:
    return max(figures) <= min(figures) * (1 + part)


@pytest.mark.parametrize("lengths", loads.LENGTHS)
def test_seeds_of_records_differ_in_bytes_but_not_in_work(lengths: str) -> None:
    found = [loads.records(lengths, seed) for seed in SEEDS]

    values = [b"".join(value for _, value, _ in each) for each in found]
    packed = [len(zstandard.compress(value)) for value in values]
    keyed = [fmean(key is not None for key, _, _ in each) for each in found]
    headed = [fmean(bool(headers) for _, _, headers in each) for each in found]
    assert len(set(values)) == len(SEEDS)
    assert near([float(len(value)) for value in values], 0.02)
    assert near([float(size) for size in packed], 0.03)
    assert near(keyed, 0.1)
    assert near(headed, 0.15)


def test_lengths_are_spread() -> None:
    lengths = sorted(len(value) for _, value, _ in loads.records("50 B-100 kB", 1))

    assert lengths[0] == 50
    assert lengths[-1] > 20_000
    assert 600 < lengths[len(lengths) // 2] < 800


@pytest.mark.parametrize("mix", loads.RECORDINGS)
def test_seeds_of_pushes_have_other_metrics_and_nearly_the_same_bytes(mix: str) -> None:
    found = [loads.pushes(mix, seed, 48) for seed in SEEDS]

    assert len({payload for each in found for _, payload in each}) > 100
    assert near([float(sum(len(payload) for _, payload in each)) for each in found], 0.05)
    opened = zstandard.ZstdDecompressor().decompressobj().decompress(found[0][0][1])
    assert MetricsData.FromString(opened).resource_metrics


def test_a_seed_gives_the_same_load_again() -> None:
    assert loads.records("50-150 B", 1) == loads.records("50-150 B", 1)
    assert loads.pushes("mixed", 1, 8) == loads.pushes("mixed", 1, 8)


def test_the_quick_table_has_rows_of_each_kind() -> None:
    assert {(row.mode, row.lengths) for row in ROWS if row.quick} >= {
        *(("produce", lengths) for lengths in loads.LENGTHS),
        ("fetch", "200-2000 B"),
    }
