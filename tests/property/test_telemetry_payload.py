"""Labels on random payloads compared with a straightforward implementation; arbitrary bytes raise only
documented errors.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from odradek.otlp.labeled_payload import PayloadLimits
from odradek.otlp.labels import EncodedLabels, encode_labels
from odradek.otlp.protobuf_bytes import NotOtlp
from odradek.telemetry.otlp_schema import validate
from odradek.telemetry.payload import label, open_payload
from odradek.wire.compression import CorruptData, TooLarge
from support.examples import examples

LIMITS = PayloadLimits(max_bytes=100_000)

keys = st.sampled_from(["client_id", "node_id", "rack", "", "é", "k" * 200])
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
labels = st.dictionaries(keys, texts, min_size=1, max_size=3)

values = st.one_of(
    texts.map(lambda text: AnyValue(string_value=text)),
    st.integers(-(2**63), 2**63 - 1).map(lambda number: AnyValue(int_value=number)),
    st.just(AnyValue()),
)
attributes = st.builds(lambda key, value: KeyValue(key=key, value=value), keys, values)
resources = st.builds(
    lambda own, dropped: Resource(attributes=own, dropped_attributes_count=dropped),
    st.lists(attributes, max_size=4),
    st.sampled_from([0, 3]),
)
points = st.builds(
    lambda own, number: NumberDataPoint(attributes=own, as_int=number),
    st.lists(attributes, max_size=2),
    st.integers(-5, 5),
)


def metric(name: str, data_points: list[NumberDataPoint]) -> Metric:
    built = Metric(name=name)
    built.gauge.data_points.extend(data_points)
    return built


metrics = st.builds(metric, texts, st.lists(points, max_size=2))
scopes = st.builds(
    lambda own, url: ScopeMetrics(metrics=own, schema_url=url), st.lists(metrics, max_size=2), texts
)


@st.composite
def payloads(draw: st.DrawFn) -> MetricsData:
    """Few different resources, each several times, or none at all."""
    few = draw(st.lists(st.one_of(st.none(), resources), min_size=1, max_size=3))
    urls = draw(st.sampled_from([[""], ["", "https://one", "https://two"]]))
    data = MetricsData()
    for _ in range(draw(st.integers(0, 5))):
        entry = ResourceMetrics(schema_url=draw(st.sampled_from(urls)))
        resource = draw(st.sampled_from(few))
        if resource is not None:
            entry.resource.CopyFrom(resource)
        entry.scope_metrics.extend(draw(st.lists(scopes, max_size=2)))
        data.resource_metrics.append(entry)
    return data


def obvious(data: MetricsData, wanted: dict[str, str]) -> list[ResourceMetrics]:
    """Set labels attribute by attribute, then merge entries with equal resource and schema URL."""
    groups: dict[tuple[bytes, str], ResourceMetrics] = {}
    for entry in data.resource_metrics:
        kept = [attribute for attribute in entry.resource.attributes if attribute.key not in wanted]
        key = (entry.resource.SerializeToString(), entry.schema_url)
        group = groups.setdefault(key, ResourceMetrics(schema_url=entry.schema_url))
        if not group.resource.attributes:
            group.resource.dropped_attributes_count = entry.resource.dropped_attributes_count
            group.resource.attributes.extend(kept)
            for name, text in wanted.items():
                group.resource.attributes.add(key=name).value.string_value = text
        group.scope_metrics.extend(entry.scope_metrics)
    return list(groups.values())


@settings(max_examples=examples(300))
@given(data=payloads(), wanted=labels)
def test_labels_are_those_of_the_straightforward_implementation(
    data: MetricsData, wanted: dict[str, str]
) -> None:
    labeled = label(data.SerializeToString(), encode_labels(wanted), LIMITS)

    assert list(MetricsData.FromString(labeled).resource_metrics) == obvious(data, wanted)


@settings(max_examples=examples(300))
@given(
    pushes=st.lists(
        st.tuples(payloads(), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)), max_size=2))
    ),
    wanted=labels,
)
def test_what_is_remembered_of_a_client_changes_no_payload(
    pushes: list[tuple[MetricsData, list[tuple[int, int]]]], wanted: dict[str, str]
) -> None:
    used = encode_labels(wanted)

    for data, flips in pushes:
        raw = data.SerializeToString()
        for pushed in (raw, flipped(raw, flips), raw):
            assert outcome(pushed, used) == outcome(pushed, encode_labels(wanted))


def outcome(raw: bytes, encoded: EncodedLabels) -> bytes | type[Exception]:
    """The labeled payload, or the kind of the refusal."""
    try:
        return label(raw, encoded, LIMITS)
    except (TooLarge, NotOtlp) as error:
        return type(error)


def flipped(raw: bytes, flips: list[tuple[int, int]]) -> bytes:
    """The bytes with other ones at some positions, as long as before."""
    mutated = bytearray(raw)
    for position, byte in flips:
        if position < len(mutated):
            mutated[position] = byte
    return bytes(mutated)


@settings(max_examples=examples(300))
@given(
    data=payloads(),
    cut=st.integers(0, 200),
    flips=st.lists(st.tuples(st.integers(0, 500), st.integers(0, 255))),
)
def test_validator_refuses_the_same_payloads_as_the_full_schema(
    data: MetricsData, cut: int, flips: list[tuple[int, int]]
) -> None:
    mutated = flipped(data.SerializeToString(), flips)
    raw = mutated[: len(mutated) - cut] if cut < len(mutated) else mutated

    assert accepted_by_validator(raw) == accepted_by_protobuf(raw)


def accepted_by_validator(raw: bytes) -> bool:
    try:
        validate(raw)
    except NotOtlp:
        return False
    return True


def accepted_by_protobuf(raw: bytes) -> bool:
    try:
        MetricsData.FromString(raw)
    except DecodeError:
        return False
    return True


@settings(max_examples=examples(400))
@given(
    codec=st.integers(0, 4),
    data=st.one_of(st.binary(max_size=300), payloads().map(lambda data: data.SerializeToString())),
    wanted=st.one_of(st.none(), labels),
)
def test_arbitrary_bytes_raise_only_documented_errors(
    codec: int, data: bytes, wanted: dict[str, str] | None
) -> None:
    encoded = encode_labels(wanted) if wanted else None

    try:
        opened = open_payload(codec, data, encoded, LIMITS)
    except (TooLarge, CorruptData, NotOtlp):
        return

    assert accepted_by_protobuf(opened)
