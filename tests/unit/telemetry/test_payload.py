from __future__ import annotations

import pickle
import random
import time
import tracemalloc

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.otlp.labeled_payload import PayloadLimits, single_scope
from odradek.otlp.labels import EncodedLabels, encode_labels
from odradek.otlp.protobuf_bytes import NotOtlp, delimited
from odradek.otlp.protobuf_fields import TooMuchWork
from odradek.telemetry.payload import PayloadWork, label, open_payload
from odradek.wire.compression import Codec, CorruptData, TooLarge, compress

LIMITS = PayloadLimits()
LABELS = encode_labels({"client_id": "producer-1", "node_id": "1"})
NAMED = {"client_id": "producer-1", "node_id": "1"}
EMPTY_ENTRY = b"\x0a\x00"


def metrics_data(*resources: dict[str, str], schema_url: str = "") -> MetricsData:
    """One ResourceMetrics with one metric for each resource; the metric's name is its position."""
    data = MetricsData()
    for index, attributes in enumerate(resources):
        entry = data.resource_metrics.add(schema_url=schema_url)
        for key, value in attributes.items():
            entry.resource.attributes.add(key=key).value.string_value = value
        entry.scope_metrics.add().metrics.add(name=f"m{index}").gauge.data_points.add(as_int=index)
    return data


def attributes_of(data: bytes) -> list[dict[str, str]]:
    """The attributes of each Resource."""
    return [
        {attribute.key: attribute.value.string_value for attribute in entry.resource.attributes}
        for entry in MetricsData.FromString(data).resource_metrics
    ]


def names_of(data: bytes) -> list[list[str]]:
    """The names of the metrics of each ResourceMetrics."""
    return [
        [metric.name for scope in entry.scope_metrics for metric in scope.metrics]
        for entry in MetricsData.FromString(data).resource_metrics
    ]


def test_equal_resources_are_merged_with_labels() -> None:
    data = metrics_data({"rack": "a"}, {"rack": "a"}, {"rack": "a"}).SerializeToString()

    labeled = label(data, LABELS, LIMITS)

    assert attributes_of(labeled) == [{"rack": "a", **NAMED}]
    assert names_of(labeled) == [["m0", "m1", "m2"]]


@pytest.mark.parametrize("resource", [b"", b"\x0a\x00", b"own" * 100])
def test_one_entry_with_one_scope_is_recognized_by_its_lengths(resource: bytes) -> None:
    scope = delimited(0x12, b"scope" * 100)
    data = delimited(0x0A, (delimited(0x0A, resource) if resource else b"") + scope)

    parts = single_scope(data)

    assert parts is not None
    start, field = parts
    assert (data[start:field], data[field:]) == (resource, scope)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        EMPTY_ENTRY,
        delimited(0x0A, delimited(0x0A, b"own")),
        delimited(0x0A, delimited(0x12, b"scope")) * 2,
        delimited(0x0A, delimited(0x12, b"scope") * 2),
        delimited(0x0A, delimited(0x0A, b"own") * 2 + delimited(0x12, b"scope")),
        delimited(0x0A, delimited(0x12, b"scope") + delimited(0x0A, b"own")),
        delimited(0x0A, delimited(0x12, b"scope") + delimited(0x1A, b"url")),
        delimited(0x0A, delimited(0x22, b"unknown") + delimited(0x12, b"scope")),
        delimited(0x0A, delimited(0x12, b"scope")) + delimited(0x12, b"unknown"),
        delimited(0x12, delimited(0x12, b"scope")),
        delimited(0x0A, delimited(0x12, b"scope"))[:-1],
        delimited(0x0A, delimited(0x12, b"scope")[:-1]),
        delimited(0x0A, b"\x0a\x7f" + delimited(0x12, b"scope")),
    ],
)
def test_other_payloads_are_not_taken_for_one_scope(data: bytes) -> None:
    assert single_scope(data) is None


def test_one_scope_is_labeled() -> None:
    one = metrics_data({"rack": "a", "client_id": "liar"}).SerializeToString()

    labeled = label(one, encode_labels(NAMED), LIMITS)

    assert single_scope(one) is not None
    assert attributes_of(labeled) == [{"rack": "a", **NAMED}]
    assert names_of(labeled) == [["m0"]]


@pytest.mark.parametrize(
    "after",
    [
        metrics_data({"rack": "b", "client_id": "liar"}).SerializeToString(),
        metrics_data({"rack": "a", "client_id": "liar"}).SerializeToString() + EMPTY_ENTRY,
        metrics_data({"rack": "a", "client_id": "liar"}).SerializeToString()[:-1],
    ],
    ids=["another resource", "another entry after it", "cut"],
)
def test_payload_after_another_is_labeled_as_the_first_one_is(after: bytes) -> None:
    usual = metrics_data({"rack": "a", "client_id": "liar"}).SerializeToString()
    used = encode_labels(NAMED)

    for data in (usual, usual, after, usual):
        assert outcome_of(data, used) == outcome_of(data, encode_labels(NAMED))


def outcome_of(data: bytes, labels: EncodedLabels) -> bytes | type[Exception]:
    """The labeled payload, or the kind of the refusal."""
    try:
        return label(data, labels, LIMITS)
    except (TooLarge, NotOtlp) as error:
        return type(error)


def test_large_resource_is_not_remembered() -> None:
    labels = encode_labels(NAMED)

    label(metrics_data({"rack": "a" * 2000}).SerializeToString(), labels, LIMITS)

    assert labels.known == (b"", b"")


def test_entries_without_a_resource_get_one() -> None:
    data = MetricsData()
    for _ in range(2):
        data.resource_metrics.add().scope_metrics.add().metrics.add(name="m")

    labeled = label(data.SerializeToString(), LABELS, LIMITS)

    assert (attributes_of(labeled), names_of(labeled)) == ([NAMED], [["m", "m"]])


def test_different_resources_stay_separate() -> None:
    data = metrics_data({"rack": "a"}, {"rack": "b"}, {"rack": "a"}, {}).SerializeToString()

    labeled = label(data, LABELS, LIMITS)

    assert attributes_of(labeled) == [{"rack": "a", **NAMED}, {"rack": "b", **NAMED}, NAMED]
    assert names_of(labeled) == [["m0", "m2"], ["m1"], ["m3"]]


def test_entry_without_a_resource_does_not_get_anothers() -> None:
    data = metrics_data({"rack": "a"})
    data.resource_metrics.add().scope_metrics.add().metrics.add(name="bare")

    labeled = label(data.SerializeToString(), LABELS, LIMITS)

    assert attributes_of(labeled) == [{"rack": "a", **NAMED}, NAMED]


def test_schema_urls_keep_entries_separate() -> None:
    first, second = metrics_data({}, {}, schema_url="https://one"), metrics_data({}, schema_url="https://two")
    data = first.SerializeToString() + second.SerializeToString()

    labeled = label(data, LABELS, LIMITS)

    entries = MetricsData.FromString(labeled).resource_metrics
    assert [entry.schema_url for entry in entries] == ["https://one", "https://two"]
    assert names_of(labeled) == [["m0", "m1"], ["m0"]]


def test_label_replaces_a_clashing_attribute() -> None:
    data = metrics_data({"client_id": "liar", "rack": "a", "node_id": "9"}).SerializeToString()

    labeled = label(data, LABELS, LIMITS)

    resource = MetricsData.FromString(labeled).resource_metrics[0].resource
    assert [attribute.key for attribute in resource.attributes] == ["rack", "client_id", "node_id"]
    assert attributes_of(labeled) == [{"rack": "a", **NAMED}]


def test_dropped_attributes_count_is_kept() -> None:
    data = metrics_data({"client_id": "liar"})
    data.resource_metrics[0].resource.dropped_attributes_count = 7

    labeled = label(data.SerializeToString(), LABELS, LIMITS)

    assert MetricsData.FromString(labeled).resource_metrics[0].resource.dropped_attributes_count == 7


def test_cached_resource_is_not_mistaken_for_another() -> None:
    labels = encode_labels(NAMED)
    payloads = [metrics_data({"rack": rack, "client_id": "x"}).SerializeToString() for rack in "aba"]

    labeled = [attributes_of(label(data, labels, LIMITS)) for data in payloads]

    assert labeled == [[{"rack": rack, **NAMED}] for rack in "aba"]


def test_without_labels_valid_bytes_are_unchanged() -> None:
    data = metrics_data({"rack": "a"}, {"rack": "a"}).SerializeToString()

    assert label(data, None, LIMITS) is data


@pytest.mark.parametrize("labels", [LABELS, None])
def test_empty_payload_stays_empty(labels: EncodedLabels | None) -> None:
    assert label(b"", labels, LIMITS) == b""


@pytest.mark.parametrize("labels", [LABELS, None])
@pytest.mark.parametrize(
    "data",
    [
        b"test-data",
        b"\x0a\x05\x01",
        b"\x0a\x02\x0a\x05",
        b"\x0a\x04\x12\x02\x12\x05",
        delimited(0x0A, delimited(0x0A, delimited(0x0A, delimited(0x0A, b"\xff")))),
        b"\x0a",
        b"\xff" * 11,
    ],
    ids=["text", "cut entry", "cut resource", "cut metric", "key that is not UTF-8", "cut length", "varint"],
)
def test_bytes_that_are_not_otlp_are_refused(data: bytes, labels: EncodedLabels | None) -> None:
    with pytest.raises(NotOtlp):
        label(data, labels, LIMITS)


@pytest.mark.parametrize("labels", [LABELS, None])
def test_other_bytes_pass_if_otlp_is_not_required(labels: EncodedLabels | None) -> None:
    limits = PayloadLimits(require_otlp=False)

    assert label(b"test-data", labels, limits) == b"test-data"


def test_bad_bytes_in_a_good_frame_pass_unlabeled_if_otlp_is_not_required() -> None:
    data = delimited(0x0A, delimited(0x12, b"\x12\x05"))

    assert label(data, LABELS, PayloadLimits(require_otlp=False)) == data


def test_million_empty_entries_are_refused_before_they_take_memory() -> None:
    data = EMPTY_ENTRY * 1_000_000
    tracemalloc.start()

    with pytest.raises(TooLarge):
        label(data, LABELS, LIMITS)

    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 100_000


@pytest.mark.parametrize(("entries", "fine"), [(10_000, True), (10_001, False), (40_000, False)])
def test_cap_of_entries_is_exact(entries: int, fine: bool) -> None:
    outcome = None
    try:
        label(EMPTY_ENTRY * entries, LABELS, LIMITS)
    except TooLarge as error:
        outcome = error

    assert (outcome is None) is fine


def test_deep_nesting_is_refused() -> None:
    value = b""
    for _ in range(10_000):
        value = delimited(0x2A, delimited(0x0A, value))
    attribute = delimited(0x0A, delimited(0x0A, b"k") + delimited(0x12, value))

    with pytest.raises(NotOtlp):
        label(delimited(0x0A, delimited(0x0A, attribute)), LABELS, LIMITS)


def test_nesting_that_protobuf_accepts_is_accepted() -> None:
    value = AnyValue(string_value="x")
    for _ in range(20):
        outer = AnyValue()
        outer.array_value.values.append(value)
        value = outer
    data = metrics_data({})
    data.resource_metrics[0].resource.attributes.append(KeyValue(key="deep", value=value))

    labeled = label(data.SerializeToString(), LABELS, LIMITS)

    assert set(attributes_of(labeled)[0]) == {"deep", *NAMED}


def test_number_of_different_resources_is_capped() -> None:
    data = metrics_data(*({"rack": str(index)} for index in range(257))).SerializeToString()

    with pytest.raises(TooLarge, match="different resources"):
        label(data, LABELS, LIMITS)


def test_number_of_parsed_fields_is_capped() -> None:
    data = metrics_data(*({"rack": str(index % 2)} for index in range(100))).SerializeToString()

    with pytest.raises(TooMuchWork):
        label(data, LABELS, PayloadLimits(max_fields=300))


def test_resource_of_a_million_attributes_is_too_much_work() -> None:
    data = delimited(0x0A, delimited(0x0A, b"\x0a\x00" * 500_000))

    with pytest.raises(TooMuchWork):
        label(data, encode_labels(NAMED), LIMITS)


def test_large_first_resource_is_not_multiplied() -> None:
    first = delimited(0x0A, delimited(0x0A, delimited(0x0A, delimited(0x0A, b"k" * 30_000))))
    data = first + b"\x0a\x02\x0a\x00" * 5000
    tracemalloc.start()

    labeled = label(data, LABELS, LIMITS)

    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(attributes_of(labeled)) == 2
    assert peak_bytes < 5_000_000


@pytest.mark.parametrize("codec", list(Codec))
def test_payload_is_decompressed_by_each_codec(codec: Codec) -> None:
    data = metrics_data({"rack": "a"}).SerializeToString()

    opened = open_payload(codec, compress(codec, data), LABELS, LIMITS)

    assert attributes_of(opened) == [{"rack": "a", **NAMED}]


@pytest.mark.parametrize("codec", list(Codec))
def test_bomb_in_each_codec_is_too_large(codec: Codec) -> None:
    bomb = compress(codec, bytes(4_000_000))

    with pytest.raises(TooLarge):
        open_payload(codec, bomb, LABELS, PayloadLimits(max_bytes=65_536))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_corrupt_compression_is_distinguished_from_bad_otlp(codec: Codec) -> None:
    with pytest.raises(CorruptData):
        open_payload(codec, b"\xff" + random.Random(1).randbytes(50), LABELS, LIMITS)


def test_work_can_be_sent_to_another_process() -> None:
    data = metrics_data({"rack": "a"}).SerializeToString()
    work = PayloadWork(codec=Codec.ZSTD, data=compress(Codec.ZSTD, data), labels=LABELS, limits=LIMITS)

    opened = pickle.loads(pickle.dumps(work))()

    assert attributes_of(opened) == [{"rack": "a", **NAMED}]


@pytest.mark.parametrize("error", [NotOtlp("x"), TooMuchWork("x"), TooLarge("x"), CorruptData("x")])
def test_errors_can_be_sent_back(error: Exception) -> None:
    back = pickle.loads(pickle.dumps(error))

    assert (type(back), back.args) == (type(error), error.args)


def test_a_resource_in_many_pieces_is_joined_once() -> None:
    name = delimited(0x0A, delimited(0x0A, b"k" * (4 << 20)))
    dropped_attributes_count = b"\x10\x01"
    pieces = delimited(0x0A, name) + delimited(0x0A, dropped_attributes_count) * 40_000
    data = delimited(0x0A, pieces) + EMPTY_ENTRY
    started_s = time.process_time()

    labeled = label(data, LABELS, LIMITS)

    assert time.process_time() - started_s < 1  # 5 s if each piece copies those before it
    assert attributes_of(labeled)[0].keys() == {"k" * (4 << 20), *NAMED}
