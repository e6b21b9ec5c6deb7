"""The properties of a CLIENT_METRICS resource."""

from __future__ import annotations

import pytest

from conformance.telemetry_broker import PREFIXES, TelemetryBroker
from odradek.telemetry.client_metrics_configs import (
    CONFIG_KEYS,
    DEFAULT_INTERVAL_MS,
    distinct_list,
    match_pattern,
    parse,
    parse_list,
    validate,
)
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigType
from odradek.wire.error_code import ErrorCode

INVALID_REQUEST = ErrorCode.INVALID_REQUEST
INVALID_CONFIG = ErrorCode.INVALID_CONFIG
RANGE = "Invalid value {} for interval.ms, interval must be between 100 and 3600000 (1 hour)"


def refusal(
    properties: dict[str, str], name: str = "sub-1", stored: dict[str, str] | None = None
) -> tuple[ErrorCode, str | None] | None:
    """The error code and message; None if the properties are valid."""
    try:
        validate(name, properties, stored or {})
    except ApiError as error:
        return error.code, error.message
    return None


def test_all_properties_together_are_valid() -> None:
    properties = {
        "metrics": ",".join(PREFIXES),
        "interval.ms": "2000",
        "match": "client_instance_id=.*,client_id=producer-.*,client_software_name=apache.*,"
        "client_software_version=3.*,client_source_address=127.0.0.1,client_source_port=9.*",
    }

    assert refusal(properties) is None
    assert len(parse("sub-1", properties).match_pattern) == 6


def test_empty_name_is_refused() -> None:
    assert refusal({}, name="") == (INVALID_REQUEST, "Subscription name can't be empty")


@pytest.mark.parametrize("interval", ["10", "99", "3600001", "0", "-1", "2147483647"])
def test_interval_out_of_range_is_refused(interval: str) -> None:
    assert refusal({"interval.ms": interval}) == (INVALID_REQUEST, RANGE.format(interval))


@pytest.mark.parametrize("interval", ["100", "3600000", " 100 ", "+100"])
def test_smallest_and_largest_interval_are_valid(interval: str) -> None:
    assert refusal({"interval.ms": interval}) is None


def test_unknown_key_is_refused() -> None:
    assert refusal({"random": "x"}) == (INVALID_REQUEST, "Unknown client metrics configuration: random")


def test_match_without_equals_is_refused() -> None:
    assert refusal({"match": "10"}) == (INVALID_CONFIG, "Illegal client matching pattern: 10")


@pytest.mark.parametrize("interval", ["bbb", "", "1e3", "1_000", "2147483648", "9" * 5000, "٣٠٠"])
def test_interval_that_is_not_an_integer_is_refused(interval: str) -> None:
    found = refusal({"interval.ms": interval})

    assert found is not None
    assert found[0] is INVALID_CONFIG


def test_patterns_are_keyed_by_selector() -> None:
    patterns = match_pattern(["client_id=consumer-.*", "client_software_name=kafka"])

    assert patterns == {"client_id": "consumer-.*", "client_software_name": "kafka"}


@pytest.mark.parametrize("elements", [None, []])
def test_no_elements_give_no_patterns(elements: list[str] | None) -> None:
    assert match_pattern(elements) == {}


def test_only_the_first_equals_separates() -> None:
    assert match_pattern(["client_id=foo=bar"]) == {"client_id": "foo=bar"}


@pytest.mark.parametrize("element", ["client_id", "unknown_param=foo", "client_id=[unclosed", "=x", "*=.*"])
def test_illegal_pattern_is_refused(element: str) -> None:
    expected = (INVALID_CONFIG, f"Illegal client matching pattern: {element}")

    assert refusal({"match": element}) == expected


@pytest.mark.parametrize("metrics", ["", "  "])
def test_empty_list_of_metrics_is_valid(metrics: str) -> None:
    assert refusal({"metrics": metrics}) is None
    assert parse("sub-1", {"metrics": metrics}).metrics == ()


@pytest.mark.parametrize("key", ["metrics", "match"])
@pytest.mark.parametrize("text", ["client_id=a,,client_port=b", "client_id=a,", ","])
def test_empty_elements_are_refused(key: str, text: str) -> None:
    found = refusal({key: text})

    assert found == (INVALID_CONFIG, f"Configuration '{key}' values must not be empty.")


def test_a_repeated_element_counts_once() -> None:
    """Kafka 4.3.1 drops the second one instead of refusing it."""
    subscription = parse("sub-1", {"metrics": "a,a,b", "match": "client_id=a,client_id=a"})

    assert subscription.metrics == ("a", "b")
    assert subscription.match_pattern == {"client_id": "a"}


def test_new_match_must_be_re2() -> None:
    code, message = refusal({"match": "client_id=(?!x).*"}) or (None, "")

    assert code is INVALID_CONFIG
    assert message is not None
    assert message.startswith("Client match pattern `client_id=(?!x).*` is not a valid regular expression: ")


def test_stored_match_may_stay_when_something_else_changes() -> None:
    stored = {"match": "client_id=(?!x).*"}

    assert refusal({**stored, "interval.ms": "1000"}, stored=stored) is None


def test_a_stored_match_that_only_java_understands_does_not_apply() -> None:
    broker = TelemetryBroker()
    broker.update("sub-1", {"match": "client_id=(?!x).*", "interval.ms": "1000"})
    broker.update("sub-2", {"match": "client_id=(?!producer).*", "interval.ms": "100"})

    told = broker.get()

    assert told.push_interval_ms == DEFAULT_INTERVAL_MS


def test_a_pattern_cannot_contain_a_comma() -> None:
    found = refusal({"match": "client_id=a{1,3}"})

    # The part before the comma is a literal match; the part after it is not a pattern.
    assert found == (INVALID_CONFIG, "Illegal client matching pattern: 3}")


def test_last_of_two_patterns_for_one_selector_counts() -> None:
    assert match_pattern(["client_id=a", "client_id=b"]) == {"client_id": "b"}


def test_key_and_pattern_are_trimmed() -> None:
    assert match_pattern([" client_id = a b "]) == {"client_id": "a b"}


def test_pattern_may_be_empty() -> None:
    assert match_pattern(["client_id="]) == {"client_id": ""}


@pytest.mark.parametrize(
    ("text", "elements"),
    [("", []), (" \t", []), ("a", ["a"]), (" a , b\t,c ", ["a", "b", "c"]), ("a,,b,", ["a", "", "b", ""])],
)
def test_lists_are_split_as_kafka_splits_them(text: str, elements: list[str]) -> None:
    assert parse_list(text) == elements


def test_elements_keep_their_order() -> None:
    assert distinct_list("metrics", "b,a,c") == ["b", "a", "c"]


def test_three_keys_with_type_default_and_documentation() -> None:
    rows = [(key.name, key.kind.type, key.default_text, key.documentation) for key in CONFIG_KEYS]

    assert rows == [
        ("metrics", ConfigType.LIST, "", "Telemetry metric name prefix list"),
        ("interval.ms", ConfigType.INT, "300000", "Metrics push interval in milliseconds"),
        ("match", ConfigType.LIST, "", "Client match criteria"),
    ]
