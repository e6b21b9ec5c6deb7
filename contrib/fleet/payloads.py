"""The payloads of recorded clients with other values and current times, shared with the benches."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.testing.pushes import recorded

TIME, BEGIN = 0x1122334455667788, 0x1122334455667799
"""Times in the templates, replaced in each push."""
VARIANTS = 50
FULL_PUSH = 3
"""The recorded push that templates are made of: a client's first pushes may lack metrics."""


def template(recording: str, source: random.Random) -> bytes:
    """A recorded push with new values and replaceable times."""
    data = MetricsData.FromString(recorded(recording)[FULL_PUSH].data)
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for point in (*metric.gauge.data_points, *metric.sum.data_points):
                    point.time_unix_nano, point.start_time_unix_nano = TIME, BEGIN
                    if point.WhichOneof("value") == "as_double":
                        point.as_double = round(source.random() * 1000, source.randrange(4))
    return data.SerializeToString()


def dated(payload: bytes, at_ns: int, interval_ms: int) -> bytes:
    """A template with the time of its push, epoch nanoseconds, and the begin of its interval."""
    for slot, time_ns in ((TIME, at_ns), (BEGIN, at_ns - interval_ms * 1_000_000)):
        payload = payload.replace(slot.to_bytes(8, "little"), time_ns.to_bytes(8, "little"))
    return payload


@dataclass(slots=True)
class RecordedPayloads:
    """A choice of templates for each recording; the same seed gives the same payloads."""

    recordings: Sequence[str]
    variants: int = VARIANTS
    seed: int = 1
    templates: Mapping[str, list[bytes]] = field(init=False)

    def __post_init__(self) -> None:
        source = random.Random(self.seed)
        self.templates = {
            each: [template(each, source) for _ in range(self.variants)] for each in self.recordings
        }

    def push(self, recording: str, source: random.Random, at_ns: int, interval_ms: int) -> bytes:
        """A serialized ``MetricsData`` of a client of a recording."""
        return dated(source.choice(self.templates[recording]), at_ns, interval_ms)
