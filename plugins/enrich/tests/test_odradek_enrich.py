"""The labels of KIP-714, and the table that selects them."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.plugin import (
    CONTEXT_LABELS,
    ConfigError,
    PluginConfig,
    RequestContext,
)
from odradek.testing import request_context
from odradek.testing.data_points import data_points
from odradek.testing.pushes import recorded, recorded_clients
from odradek_enrich import odradek_enricher
from odradek_enrich.context_enricher import ContextEnricher

INSTANCE = bytes(range(16))


def request_of(client_id: str | None = "orders", cluster_id: str | None = None) -> RequestContext:
    return request_context(
        listener_name="EXTERNAL",
        security_protocol="SASL_PLAINTEXT",
        client_address="10.1.2.3",
        client_port=40_000,
        node_id=7,
        principal="User:alice",
        client_software_name="librdkafka",
        client_software_version="2.16.1",
        cluster_id=cluster_id,
        client_id=client_id,
    )


def enricher_of(**table: object) -> ContextEnricher:
    config = PluginConfig("plugins.enrich", {name.replace("__", "."): value for name, value in table.items()})
    enricher = odradek_enricher(config)
    config.finish()
    assert enricher is not None
    return enricher


def test_without_a_table_eight_labels_are_set() -> None:
    enricher = enricher_of()

    labels = enricher.labels(INSTANCE, request_of())

    assert labels == {
        "client_instance_id": "AAECAwQFBgcICQoLDA0ODw",
        "client_id": "orders",
        "client_software_name": "librdkafka",
        "client_software_version": "2.16.1",
        "client_source_address": "10.1.2.3",
        "client_source_port": "40000",
        "principal": "User:alice",
        "broker_node_id": "7",
    }


@pytest.mark.parametrize("name", sorted(CONTEXT_LABELS))
def test_each_label_can_be_the_only_one(name: str) -> None:
    enricher = enricher_of(labels=[name])

    labels = enricher.labels(INSTANCE, request_of(cluster_id="a-cluster"))

    assert list(labels) == [name]


def test_a_relayed_push_has_the_label_of_its_cluster() -> None:
    labels = enricher_of().labels(INSTANCE, request_of(cluster_id="a-cluster"))

    assert labels["cluster_id"] == "a-cluster"


def test_a_client_without_a_client_id_has_no_client_id_label() -> None:
    enricher = enricher_of(labels=["client_id", "principal"])

    labels = enricher.labels(INSTANCE, request_of(client_id=None))

    assert labels == {"principal": "User:alice"}


def test_the_brokers_label_can_have_the_name_in_the_kip() -> None:
    enricher = enricher_of(labels=["client_id", "node_id"])

    labels = enricher.labels(INSTANCE, request_of())

    assert labels == {"client_id": "orders", "node_id": "7"}


@pytest.mark.parametrize("client", recorded_clients())
def test_no_label_has_the_name_of_an_attribute_of_a_data_point(client: str) -> None:
    """A collector that makes the labels those of the series would overwrite the attribute."""
    attributes = {
        name for push in recorded(client) for point in data_points(push.data) for name in point.attributes
    }

    labels = enricher_of().labels(INSTANCE, request_of())

    assert attributes & labels.keys() == set()


def test_an_empty_client_id_is_a_label() -> None:
    enricher = enricher_of(labels=["client_id"])

    labels = enricher.labels(INSTANCE, request_of(client_id=""))

    assert labels == {"client_id": ""}


def test_static_labels_are_set_in_addition() -> None:
    enricher = enricher_of(labels="principal", static__team="payments", static__region="eu")

    labels = enricher.labels(INSTANCE, request_of())

    assert labels == {"principal": "User:alice", "team": "payments", "region": "eu"}


def test_a_disabled_label_may_be_static() -> None:
    enricher = enricher_of(labels=["client_id"], static__broker_node_id="edge")

    labels = enricher.labels(INSTANCE, request_of())

    assert labels == {"client_id": "orders", "broker_node_id": "edge"}


def test_the_client_instance_id_is_base64url_without_padding() -> None:
    enricher = enricher_of(labels=["client_instance_id"])

    labels = enricher.labels(b"\xff" * 16, request_of())

    assert labels == {"client_instance_id": "_____________________w"}


def test_without_labels_the_plugin_offers_nothing() -> None:
    config = PluginConfig("plugins.enrich", {"labels": []})

    enricher = odradek_enricher(config)

    assert enricher is None


@pytest.mark.parametrize(
    ("table", "path"),
    [
        ({"labels": ["client_id", "client_name"]}, "plugins.enrich.labels"),
        ({"labels": 3}, "plugins.enrich.labels"),
        ({"static.team": 5}, "plugins.enrich.static.team"),
        ({"static.broker_node_id": "5"}, "plugins.enrich.static.broker_node_id"),
        ({"static.": "5"}, "plugins.enrich.static"),
    ],
)
def test_an_invalid_table_is_refused_with_its_key(table: dict[str, object], path: str) -> None:
    config = PluginConfig("plugins.enrich", table)

    with pytest.raises(ConfigError) as caught:
        odradek_enricher(config)

    assert caught.value.path == path


def test_the_readme_lists_every_label() -> None:
    readme = Path(__file__).parent.parent / "README.md"

    text = readme.read_text()

    assert [name for name in CONTEXT_LABELS if f"| `{name}` |" not in text] == []
