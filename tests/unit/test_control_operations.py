"""The operations of the control port: JSON in, JSON out, and one clear error for each mistake."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pytest

from odradek.testing.control.arguments import arguments
from odradek.testing.control.results import as_json
from odradek.testing.host_topics import StoredRecord
from odradek.wire.error_code import ErrorCode


def example(
    topic: str,
    times: int | None = 1,
    *,
    drop: Literal["before", "after"] | None = None,
    value: bytes | None = None,
    match: Mapping[str, str] | None = None,
    names: str | Sequence[str] = (),
    timeout_s: float = 5,
    optional: bool = False,
    offsets: Mapping[int, int] | None = None,
) -> None:
    """An operation with every type of argument."""


def settings(name: str, **values: float | None) -> None:
    """An operation with arguments of any name."""


@pytest.mark.parametrize(
    "given",
    [
        {"times": None, "drop": "after", "optional": True, "timeout_s": 2},
        {"match": {"client_id": "a.*"}, "names": ["a", "b"]},
        {"names": "a", "timeout_s": 0.5},
    ],
)
def test_json_values_are_arguments(given: dict[str, object]) -> None:
    assert arguments(example, {"topic": "t", **given}, {}) == {"topic": "t", **given}


def test_keys_of_objects_may_be_numbers() -> None:
    assert arguments(example, {"topic": "t", "offsets": {"3": 7}}, {})["offsets"] == {3: 7}


@pytest.mark.parametrize(
    ("given", "value"), [("é", b"\xc3\xa9"), ({"base64": "/wA="}, b"\xff\x00"), (None, None)]
)
def test_bytes_are_text_or_base64(given: object, value: bytes | None) -> None:
    assert arguments(example, {"topic": "t", "value": given}, {})["value"] == value


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "argument 'topic' is missing: topic, times=1, drop="),
        ({"topic": "t", "time": 1}, "unknown argument 'time': did you mean times?; expected topic, times=1"),
        ({"topic": 1}, "topic=1: expected text"),
        ({"topic": "t", "times": "2"}, "times='2': expected a whole number or null"),
        ({"topic": "t", "times": True}, "times=True: expected a whole number or null"),
        ({"topic": "t", "optional": 1}, "optional=1: expected true or false"),
        ({"topic": "t", "timeout_s": "1"}, "timeout_s='1': expected a number"),
        ({"topic": "t", "drop": "now"}, "drop='now': expected 'before' or 'after' or null"),
        ({"topic": "t", "match": {"a": 1}}, "match={'a': 1}: expected an object of text or null"),
        (
            {"topic": "t", "offsets": {"a": 1}},
            "offsets={'a': 1}: expected an object of a whole number",
        ),
        ({"topic": "t", "names": [1]}, "names=[1]: expected text or a list of text"),
        ({"topic": "t", "value": {"base64": "?"}}, """expected text or {"base64": "..."} or null"""),
    ],
)
def test_a_mistake_is_one_clear_error(given: dict[str, object], expected: str) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)):
        arguments(example, given, {})


def test_arguments_of_any_name_are_checked_too() -> None:
    given = {"name": "a", "producer_byte_rate": 1, "consumer_byte_rate": None}

    assert arguments(settings, given, {}) == given
    with pytest.raises(ValueError, match="producer_byte_rate='1': expected a number or null"):
        arguments(settings, {"name": "a", "producer_byte_rate": "1"}, {})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (ErrorCode.NOT_ENOUGH_REPLICAS, "NOT_ENOUGH_REPLICAS"),
        (float("nan"), None),
        (b"one", "one"),
        (b"\xff", {"base64": "/w=="}),
        ({"a": (1, [b"b"])}, {"a": [1, ["b"]]}),
        (
            StoredRecord(0, 7, None, b"v", 12, (("h", b"\xff"),)),
            {
                "partition": 0,
                "offset": 7,
                "key": None,
                "value": "v",
                "timestamp_ms": 12,
                "headers": [["h", {"base64": "/w=="}]],
            },
        ),
    ],
)
def test_results_are_json(value: Any, expected: Any) -> None:
    assert as_json(value) == expected
