"""Plugins that are clients of librdkafka log in with tokens that librdkafka fetches from the issuer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.client.admin import AdminClient
from odradek.client.resources import NewTopic
from odradek.plugin import Retry
from odradek_spark.source.options import SourceOptions
from odradek_spark.source.topic import TopicError, TopicReader
from support.hosts import ThreadedHost, running_host
from support.issuer import JWKS_KEY, Issuer, issuing
from support.kafka_export import deliver, record_of

LISTENERS = "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"


@pytest.fixture(params=[3_600, -3_600], ids=["good", "expired"])
def issuer(request: pytest.FixtureRequest) -> Iterator[Issuer]:
    with issuing() as started:
        started.lasts_s = request.param
        yield started


@pytest.fixture
def host(tmp_path: Path, issuer: Issuer) -> Iterator[ThreadedHost]:
    keys = f"{JWKS_KEY}={issuer.url('/keys')}"
    with running_host(tmp_path / "data", LISTENERS, "sasl.enabled.mechanisms=OAUTHBEARER", keys) as started:
        yield started


def options(issuer: Issuer) -> dict[str, str]:
    """The options of librdkafka."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "odradek",
        "sasl.oauthbearer.client.secret": "secret",
        "sasl.oauthbearer.token.endpoint.url": issuer.url("/token"),
    }


def guarded(host: ThreadedHost) -> str:
    return f"127.0.0.1:{host.host.listeners[1].bound_port}"


def test_the_export_to_a_topic(host: ThreadedHost, issuer: Issuer) -> None:
    table: dict[str, object] = {f"client.{key}": value for key, value in options(issuer).items()}

    (error,) = deliver(guarded(host), [record_of(1)], **table, **{"deliver.timeout.ms": 3_000})

    if issuer.lasts_s > 0:
        assert error is None
    else:
        assert isinstance(error, Retry)


def test_the_reader_of_the_pipeline(host: ThreadedHost, issuer: Issuer) -> None:
    with AdminClient(host.bootstrap) as admin:
        admin.create_topics([NewTopic(name="pushes", partitions=2)])
    client = options(issuer) | {"bootstrap.servers": guarded(host)}
    reader = TopicReader(SourceOptions(client=client, topic="pushes"), timeout_s=3)

    try:
        if issuer.lasts_s > 0:
            assert reader.partitions() == [0, 1]
        else:
            with pytest.raises(TopicError):
                reader.partitions()
    finally:
        reader.close()
