"""Topic names made of labels that clients may choose."""

from __future__ import annotations

from typing import Any

import pytest

from odradek_kafka.topic_names import MAX_LENGTH, TopicNames, TopicTemplate, read_template

Kit = Any
"""From conftest."""


def names_of(template: str, most: int = 32) -> TopicNames:
    return TopicNames(read_template(template), most)


@pytest.mark.parametrize(
    ("text", "template"),
    [
        ("telemetry", TopicTemplate("telemetry")),
        ("telemetry.{family}", TopicTemplate("telemetry.", "family")),
        ("a_{team}-metrics", TopicTemplate("a_", "team", "-metrics")),
        ("t.{service.name}", TopicTemplate("t.", "service.name")),
        ("x" * MAX_LENGTH, TopicTemplate("x" * MAX_LENGTH)),
    ],
)
def test_a_name_has_one_label_or_none(text: str, template: TopicTemplate) -> None:
    assert read_template(text) == template


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "a b",
        "a/b",
        "x" * (MAX_LENGTH + 1),
        "{family}",
        "{family}.telemetry",
        "a.{x}.{y}",
        "a.{}",
        "a.{x",
        "a}",
        "ä",
        "__client_telemetry",
        "__{family}",
        "x" * MAX_LENGTH + "{family}",
    ],
)
def test_an_invalid_template_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        read_template(text)


@pytest.mark.parametrize("family", ["producer", "consumer", "admin", "connect", "streams", "share"])
def test_the_family_is_that_of_the_first_kafka_metric(kit: Kit, family: str) -> None:
    data = kit.data(
        "application.requests", f"org.apache.kafka.{family}.some.rate", "org.apache.kafka.admin.x"
    )

    topic = names_of("telemetry.{family}").topic(data)

    assert topic == f"telemetry.{family}"


@pytest.mark.parametrize("names", [(), ("a",), ("org.apache.kafka.evil.rate",), ("org.apache.kafka.",)])
def test_an_unknown_family_is_other(kit: Kit, names: tuple[str, ...]) -> None:
    assert names_of("telemetry.{family}").topic(kit.data(*names)) == "telemetry.other"


def test_a_label_named_family_wins(kit: Kit) -> None:
    data = kit.data("org.apache.kafka.producer.x", family="mine")

    assert names_of("telemetry.{family}").topic(data) == "telemetry.mine"


@pytest.mark.parametrize("data", [b"", b"\xff\xff"])
def test_without_the_label_the_topic_is_other(kit: Kit, data: bytes) -> None:
    names = names_of("t.{team}")

    found = [names.topic(data), names.topic(kit.data("a", team="")), names.topic(kit.data("a", other="x"))]

    assert found == ["t.other"] * 3


def test_a_plain_name_does_not_parse_the_push() -> None:
    assert names_of("telemetry").topic(b"\xff\xff") == "telemetry"


@pytest.mark.parametrize(
    ("value", "topic"),
    [
        ("pay ments/eu", "t.pay_ments_eu"),
        ("../../x", "t..._.._x"),
        ("ü", "t._"),
        ("{family}", "t._family_"),
        ("x" * 1000, "t." + "x" * (MAX_LENGTH - 2)),
    ],
)
def test_characters_that_kafka_does_not_allow_are_replaced(kit: Kit, value: str, topic: str) -> None:
    found = names_of("t.{team}").topic(kit.data("a", team=value))

    assert found == topic
    assert len(found) <= MAX_LENGTH


def test_values_above_the_limit_go_to_other_and_the_first_ones_stay(kit: Kit) -> None:
    names = names_of("t.{team}", most=2)

    found = [names.topic(kit.data("a", team=team)) for team in ("a", "b", "c", "a", "other", "b", "c")]

    assert found == ["t.a", "t.b", "t.other", "t.a", "t.other", "t.b", "t.other"]


def test_names_that_collide_in_kafkas_metrics_are_one_topic(kit: Kit) -> None:
    names = names_of("t.{team}")

    found = [names.topic(kit.data("a", team=team)) for team in ("a.b", "a_b", "a b")]

    assert found == ["t.a.b"] * 3


def test_a_client_that_invents_labels_does_not_fill_the_memory(kit: Kit) -> None:
    names = names_of("t.{team}", most=3)

    for number in range(100):
        names.topic(kit.data("a", team=str(number)))

    assert len(names.admitted) == 3
