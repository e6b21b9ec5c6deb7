"""Records and pushes as applications send them, drawn from distributions and from recordings by a seed."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import zstandard
from contrib.fleet.payloads import RecordedPayloads
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from bench.payloads import ZSTD

Record = tuple[bytes | None, bytes, list[tuple[str, bytes]]]
"""Key, value, headers."""
RECORDS: Final = 2_003
"""Different records of one seed, which a client repeats."""
KEYED, WITH_HEADERS = 2 / 3, 1 / 3
WORDS: Final = (
    "id",
    "name",
    "user",
    "order",
    "state",
    "region",
    "amount",
    "items",
    "total",
    "source",
    "trace",
)
START_NS: Final = 1_760_000_000_000_000_000
INTERVAL_MS: Final = 60_000
LEFT_OUT: Final = 1 / 4
"""The part of its recording's metrics that a client lacks."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Log-normal lengths of values, bytes."""

    median: int
    sigma: float
    least: int
    most: int

    def draw(self, chance: random.Random, count: int) -> list[int]:
        """Lengths in any order, one of each of ``count`` equal parts of the distribution."""
        normal = NormalDist(math.log(self.median), self.sigma)
        parts = [(number + chance.uniform(0.01, 0.99)) / count for number in range(count)]
        found = [min(max(int(math.exp(normal.inv_cdf(part))), self.least), self.most) for part in parts]
        chance.shuffle(found)
        return found


LENGTHS: Final = {
    "50-150 B": Lengths(90, 0.3, 50, 150),
    "200-2000 B": Lengths(600, 0.6, 200, 2_000),
    "50 B-100 kB": Lengths(700, 1.3, 50, 100_000),
}
RECORDINGS: Final = {
    "librdkafka and franz-go": ("librdkafka-producer", "librdkafka-consumer", "franz-go"),
    "Java": tuple(
        f"java-{kind}" for kind in ("producer", "consumer", "share", "admin", "application", "streams")
    ),
}
RECORDINGS["mixed"] = RECORDINGS["Java"] + RECORDINGS["librdkafka and franz-go"]


def records(lengths: str, seed: int) -> list[Record]:
    """Records with values that compress as JSON does, keys, and headers."""
    chance = random.Random(f"{lengths} {seed}")
    return [
        (
            b"key-%d" % chance.getrandbits(20) if chance.random() < KEYED else None,
            document(chance, length),
            headers(chance) if chance.random() < WITH_HEADERS else [],
        )
        for length in LENGTHS[lengths].draw(chance, RECORDS)
    ]


def document(chance: random.Random, length: int) -> bytes:
    """So many bytes of JSON, cut off at the end."""
    parts, left = [b"{"], length
    while left > 0:
        number = chance.getrandbits(chance.choice((4, 10, 32)))
        parts.append(f'"{chance.choice(WORDS)}":"{chance.choice(WORDS)}-{number}",'.encode())
        left -= len(parts[-1])
    return b"".join(parts)[:length]


def headers(chance: random.Random) -> list[tuple[str, bytes]]:
    return [("traceparent", b"00-%032x-01" % chance.getrandbits(128)), ("source", b"orders")]


def pushes(mix: str, seed: int, count: int) -> list[tuple[int, bytes]]:
    """Codec and payload of ``count`` pushes, with other numbers and fewer metrics than the recorded ones."""
    chance = random.Random(f"{mix} {seed}")
    recorded = RecordedPayloads(RECORDINGS[mix], variants=1, seed=seed)
    return [push(chance, recorded, RECORDINGS[mix][number % len(RECORDINGS[mix])]) for number in range(count)]


def push(chance: random.Random, recorded: RecordedPayloads, recording: str) -> tuple[int, bytes]:
    data = MetricsData.FromString(recorded.push(recording, chance, START_NS, INTERVAL_MS))
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            kept = [metric for metric in scope.metrics if chance.random() >= LEFT_OUT]
            del scope.metrics[:]
            scope.metrics.extend(kept)
            for metric in kept:
                for point in (*metric.gauge.data_points, *metric.sum.data_points):
                    if point.WhichOneof("value") == "as_double":
                        point.as_double = round(chance.expovariate(0.01), 3)
                    else:
                        point.as_int = int(chance.expovariate(0.001))
    # as a stream: no client puts the content size into the frame
    stream = zstandard.ZstdCompressor().compressobj()
    return ZSTD, stream.compress(data.SerializeToString()) + stream.flush()
