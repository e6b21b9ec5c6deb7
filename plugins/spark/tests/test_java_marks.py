"""The source kafka asks for offsets in Java only; it says in one line why it cannot."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from odradek_spark.ingest.failures import NO_JAR
from odradek_spark.ingest.kafka_source import admin_config, topic_marks
from odradek_spark.ingest.query import check_ingest
from odradek_spark.ingest.settings import IngestSettings
from odradek_spark.ingest.watching import IngestWatch
from odradek_spark.source.topic import TopicError, Unreachable

JAAS = "TicketLogin required;"
SETTINGS = IngestSettings(
    bootstrap_servers="127.0.0.1:1", dataset="tables", source="kafka", client={"sasl.jaas.config": JAAS}
)


class NoClass:
    """The answer of py4j for a class that the JVM lacks."""

    def __getattr__(self, name: str) -> NoClass:
        return NoClass()

    def __call__(self, *arguments: object) -> None:
        raise TypeError("'JavaPackage' object is not callable")


def session(**jvm: Any) -> Any:
    return SimpleNamespace(
        _jvm=SimpleNamespace(java=SimpleNamespace(util=SimpleNamespace(HashMap=dict)), **jvm)
    )


def test_a_session_without_its_jar_is_told_which() -> None:
    with pytest.raises(TopicError) as error:
        topic_marks(session(org=NoClass()), SETTINGS)

    assert str(error.value) == NO_JAR
    assert not isinstance(error.value, Unreachable)


def test_a_spark_connect_server_is_refused() -> None:
    remote: Any = SimpleNamespace()  # it has no JVM

    with pytest.raises(TopicError, match="the source kafka does not work with Spark Connect"):
        topic_marks(remote, SETTINGS)


def test_properties_of_java_reach_its_client() -> None:
    config = admin_config(SETTINGS)

    assert (config["bootstrap.servers"], config["sasl.jaas.config"]) == ("127.0.0.1:1", JAAS)
    assert "isolation.level" not in config
    assert "includeHeaders" not in config


def test_librdkafka_does_not_read_the_properties_of_java(tmp_path: Path) -> None:
    settings = IngestSettings(
        bootstrap_servers="127.0.0.1:1",
        dataset=str(tmp_path / "tables"),
        source="kafka",
        client={"sasl.jaas.config": JAAS},
    )

    check_ingest(settings)

    with IngestWatch(settings, lambda *_: None) as watch:
        assert watch.marks() is None
