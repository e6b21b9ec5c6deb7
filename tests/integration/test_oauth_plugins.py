"""Plugins that are clients of librdkafka log in with tokens from the issuer, or from a file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from odradek.client.admin import AdminClient
from odradek.client.resources import NewTopic
from odradek.plugin import ConfigError, Retry
from odradek_spark.source.options import ReadOptions
from odradek_spark.source.topic import TopicError, TopicReader, Unreachable
from support.hosts import ThreadedHost, running_host
from support.issuer import JWKS_KEY, Issuer, issuing
from support.kafka_export import attempt, deliver, forwarder_of, record_of
from support.tokens import claims_of, signed

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

    if issuer.lasts_s <= 0:
        table["deliver.timeout.ms"] = 3_000

    (error,) = deliver(guarded(host), [record_of(1)], **table)

    if issuer.lasts_s > 0:
        assert error is None
    else:
        assert isinstance(error, Retry)


@pytest.mark.ci  # waits for real seconds
def test_the_reader_of_the_pipeline(host: ThreadedHost, issuer: Issuer) -> None:
    with AdminClient(host.bootstrap) as admin:
        admin.create_topics([NewTopic(name="pushes", partitions=2)])
    client = options(issuer) | {"bootstrap.servers": guarded(host)}
    reader = TopicReader(
        ReadOptions(client=client, topic="pushes"), timeout_s=30 if issuer.lasts_s > 0 else 3
    )

    try:
        if issuer.lasts_s > 0:
            assert reader.partitions() == [0, 1]
        else:
            with pytest.raises(TopicError):
                reader.partitions()
    finally:
        reader.close()


@dataclass(frozen=True)
class TokenOnDisk:
    """A file with a token of the issuer."""

    path: Path
    options: dict[str, str]
    """Of librdkafka, except for the address: those of Java's clients."""

    def write(self, lasts_s: float = 3_600) -> None:
        self.path.write_text(signed(claims_of("alice", time.time(), lasts_s)))


@pytest.fixture
def token(tmp_path: Path) -> TokenOnDisk:
    path = tmp_path / "token"
    options = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": f"file://{path}",
    }
    return TokenOnDisk(path, options)


@pytest.mark.parametrize("issuer", [3_600], indirect=True)
def test_the_export_reads_the_token_from_a_file(host: ThreadedHost, token: TokenOnDisk) -> None:
    table: dict[str, object] = {f"client.{key}": value for key, value in token.options.items()}
    tokens = (None, -60.0, 3_600.0)

    async def run() -> list[Exception | None]:
        forwarder = forwarder_of(guarded(host), **table)
        await forwarder.start()
        try:
            outcomes = []
            for number, lasts_s in enumerate(tokens):
                if lasts_s is not None:
                    token.write(lasts_s)
                outcomes.append(await attempt(forwarder, [record_of(number)]))
            return outcomes
        finally:
            await forwarder.close()

    missing, expired, good = asyncio.run(run())

    assert isinstance(missing, Retry)
    assert "cannot be read" in str(missing)
    assert isinstance(expired, Retry)
    assert "has expired" in str(expired)
    assert good is None


@pytest.mark.parametrize("issuer", [3_600], indirect=True)
def test_the_reader_of_the_pipeline_reads_the_token_from_a_file(
    host: ThreadedHost, token: TokenOnDisk
) -> None:
    with AdminClient(host.bootstrap) as admin:
        admin.create_topics([NewTopic(name="pushes", partitions=2)])
    options = ReadOptions(client=token.options | {"bootstrap.servers": guarded(host)}, topic="pushes")
    with pytest.raises(Unreachable, match="cannot be read"):
        TopicReader(options)
    token.write()

    with closing(TopicReader(options, timeout_s=5)) as reader:
        assert reader.partitions() == [0, 1]


@pytest.mark.ci  # waits for real seconds
@pytest.mark.parametrize("issuer", [3_600], indirect=True)
def test_the_export_logs_in_again_with_a_renewed_token(host: ThreadedHost, token: TokenOnDisk) -> None:
    table: dict[str, object] = {f"client.{key}": value for key, value in token.options.items()}
    token.write(4)

    async def run() -> list[Exception | None]:
        forwarder = forwarder_of(guarded(host), **table)
        await forwarder.start()
        try:
            outcomes = [await attempt(forwarder, [record_of(1)])]
            token.write(3_600)
            await asyncio.sleep(4.5)
            outcomes.append(await attempt(forwarder, [record_of(2)]))
            return outcomes
        finally:
            await forwarder.close()

    outcomes = asyncio.run(run())
    counts = host.host.listeners[1].counts

    assert outcomes == [None, None]
    assert counts.failed == counts.failed_again == 0


def test_the_address_of_a_token_file_is_checked_at_the_start() -> None:
    table = {"client.sasl.oauthbearer.token.endpoint.url": "file://elsewhere/token"}

    with pytest.raises(ConfigError, match="expected the file of a token as file:///PATH"):
        forwarder_of("127.0.0.1:1", **table)
