"""Which clients a subscription matches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from odradek.telemetry.instance_match import SELECTORS, ClientMetricsInstanceMetadata, InstanceMatch
from odradek.wire.uuid_text import uuid_text

ID = bytes.fromhex("4e6fb54cb8e64517889be15b99c09c20")
PRODUCER = ClientMetricsInstanceMetadata(ID, "producer-1", "apache-kafka-java", "3.5.2", "127.0.0.1", 56078)
ALL_SIX = {
    "client_instance_id": uuid_text(ID),
    "client_id": "producer-1",
    "client_software_name": "apache-kafka-.*",
    "client_software_version": "3.5.2",
    "client_source_address": "127.0.0.1",
    "client_source_port": "56078",
}


def matches(metadata: ClientMetricsInstanceMetadata, **patterns: str) -> bool:
    return InstanceMatch({"sub-1": patterns}).matching(metadata) == ["sub-1"]


def test_no_patterns_match_every_client() -> None:
    assert matches(PRODUCER)


@pytest.mark.parametrize("pattern", [".*", "producer-1", "producer.*"])
def test_client_id_is_matched(pattern: str) -> None:
    assert matches(PRODUCER, client_id=pattern)


def test_client_instance_id_is_matched_as_base64url() -> None:
    text = uuid_text(ID)

    found = [matches(PRODUCER, client_instance_id=pattern) for pattern in (text, f"{text}random")]

    assert found == [True, False]


@pytest.mark.parametrize(
    ("selector", "pattern"),
    [
        ("client_software_name", "apache-kafka-java"),
        ("client_software_version", "3.5.2"),
        ("client_source_address", "127.0.0.1"),
        ("client_source_port", "56078"),
    ],
)
def test_each_attribute_is_matched(selector: str, pattern: str) -> None:
    assert matches(PRODUCER, **{selector: pattern})


def test_all_six_attributes_match_together() -> None:
    assert matches(PRODUCER, **ALL_SIX)


@pytest.mark.parametrize(
    ("selector", "pattern"),
    [
        ("client_id", "producer-2"),
        ("client_software_name", "apache-kafka-java-1"),
        ("client_software_version", "3.5.x"),
        ("client_source_address", "1.2.3.4"),
        ("client_source_port", "8080"),
    ],
)
def test_one_mismatch_is_enough(selector: str, pattern: str) -> None:
    assert not matches(PRODUCER, **{**ALL_SIX, selector: pattern})


@pytest.mark.parametrize("key", ["unknown", "*"])
def test_unknown_selector_never_matches(key: str) -> None:
    assert not matches(PRODUCER, **{key: ".*"})


@pytest.mark.parametrize("selector", ["client_software_name", "client_software_version"])
def test_unknown_attribute_never_matches(selector: str) -> None:
    silent = replace(PRODUCER, client_software_name=None, client_software_version=None)

    assert not matches(silent, **{selector: ".*"})


@pytest.mark.parametrize("pattern", ["producer", "roducer-1", "PRODUCER-1"])
def test_patterns_are_anchored_and_case_sensitive(pattern: str) -> None:
    assert not matches(PRODUCER, client_id=pattern)


def test_empty_pattern_matches_the_empty_client_id_only() -> None:
    nameless = replace(PRODUCER, client_id="")

    assert [matches(client, client_id="") for client in (nameless, PRODUCER)] == [True, False]


def test_each_subscription_needs_all_of_its_own_patterns() -> None:
    match = InstanceMatch(
        {
            "both": {"client_id": "producer-.*", "client_source_port": "56078"},
            "half": {"client_id": "producer-.*", "client_source_port": "1"},
            "everybody": {},
            "other": {"client_id": "consumer-.*"},
        }
    )

    found = match.matching(PRODUCER)

    assert found == ["both", "everybody"]


def test_every_selector_is_an_attribute() -> None:
    known = {selector: PRODUCER.attribute(selector) for selector in SELECTORS}

    assert None not in known.values()
