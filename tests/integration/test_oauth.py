"""OAUTHBEARER with unmodified clients: tokens that are accepted and refused, keys that change, sessions that
end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.client.admin import AdminClient
from odradek.client.errors import RequestFailed
from odradek.client.sasl import SaslLogin
from odradek.client.users import new_credential
from odradek.plugin.config import ConfigError
from odradek.security.scram import ScramMechanism
from odradek.waiting.clock import SystemClock
from support.client_sockets import closed_sockets
from support.hosts import ThreadedHost, running_host
from support.issuer import JWKS_KEY, Issuer, issuing
from support.tokens import claims_of, jwks, public_jwk, signed
from support.waiting import wait_until

LISTENERS = "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
ENABLED = "sasl.enabled.mechanisms=OAUTHBEARER,SCRAM-SHA-256"
TOKENS = {
    "good": lambda: token(),
    "expired": lambda: token(lasts_s=-60),
    "wrong signature": lambda: signed(claims_of("alice", time.time()), name="other"),
}
REFUSED = [name for name in TOKENS if name != "good"]


def token(user: str = "alice", lasts_s: float = 3_600, **more: Any) -> str:
    return signed(claims_of(user, time.time() - 100, lasts_s + 100, **more))


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with issuing() as started:
        yield started


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Iterator[ThreadedHost]:
    keys = f"{JWKS_KEY}={issuer.url('/keys')}"
    with running_host(tmp_path_factory.mktemp("oauth") / "data", LISTENERS, ENABLED, keys) as started:
        yield started


def guarded(host: ThreadedHost) -> str:
    return f"127.0.0.1:{host.host.listeners[1].bound_port}"


def librdkafka(bootstrap: str, make: Callable[[], str]) -> int:
    kafka = pytest.importorskip("confluent_kafka")
    errors: list[Any] = []
    producer = kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (make(), time.time() + 3_600, "alice", {"traceId": "7"}),
            "error_cb": errors.append,
        }
    )
    return produced_by_librdkafka(producer, errors)


def produced_by_librdkafka(producer: Any, errors: list[Any]) -> int:
    """The records that were delivered: one, or none and an error."""
    delivered: list[Any] = []
    producer.produce("librdkafka", b"value", on_delivery=lambda error, _: delivered.append(error))

    def is_delivered() -> bool:
        producer.poll(0.05)
        if any("invalid_token" in error.str() for error in errors):
            producer.purge()
            raise PermissionError(errors)
        return bool(delivered)

    wait_until(is_delivered, lambda: errors)
    assert delivered == [None]
    return len(delivered)


def kafka_python(bootstrap: str, make: Callable[[], str]) -> int:
    kafka = pytest.importorskip("kafka")
    provider = pytest.importorskip("kafka.net.sasl.oauth").AbstractTokenProvider

    class Provider(provider):  # type: ignore[misc, valid-type]
        def token(self) -> str:
            return make()

    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Provider(),
        bootstrap_timeout_ms=2_000,
    )
    try:
        return len([producer.send("kafka-python", b"value").get(10)])
    finally:
        producer.close()


def aiokafka(bootstrap: str, make: Callable[[], str]) -> int:
    module = pytest.importorskip("aiokafka")
    provider = pytest.importorskip("aiokafka.abc").AbstractTokenProvider

    class Provider(provider):  # type: ignore[misc, valid-type]
        async def token(self) -> str:
            return make()

    async def produce() -> int:
        producer = module.AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Provider(),
        )
        try:
            await producer.start()
            return len([await producer.send_and_wait("aiokafka", b"value")])
        finally:
            await producer.stop()

    return asyncio.run(produce())


def our_own(bootstrap: str, make: Callable[[], str]) -> int:
    with AdminClient(bootstrap, login=SaslLogin("OAUTHBEARER", token=make)) as admin:
        return 1 + len(admin.describe_user_scram_credentials())


CLIENTS = [librdkafka, kafka_python, aiokafka, our_own]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_logs_in(host: ThreadedHost, client: Callable[..., int]) -> None:
    assert client(guarded(host), TOKENS["good"]) == 1


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_is_refused(host: ThreadedHost, client: Callable[..., int], kind: str) -> None:
    counts = host.host.listeners[1].counts
    before = counts.succeeded

    refusal = r"(?i)invalid_token|auth|bootstrap|connect"
    with closed_sockets(), pytest.raises(Exception, match=refusal):
        client(guarded(host), TOKENS[kind])

    assert counts.succeeded == before


def test_librdkafka_fetches_its_token_itself(host: ThreadedHost, issuer: Issuer) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    errors: list[Any] = []
    producer = kafka.Producer(
        {
            "bootstrap.servers": guarded(host),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "client",
            "sasl.oauthbearer.client.secret": "secret",
            "sasl.oauthbearer.token.endpoint.url": issuer.url("/token"),
            "error_cb": errors.append,
        }
    )

    assert produced_by_librdkafka(producer, errors) == 1
    assert "/token" in issuer.asked


def test_our_own_client_gets_the_reason(host: ThreadedHost) -> None:
    with pytest.raises(RequestFailed, match=r'\{"status":"invalid_token"\}'):
        our_own(guarded(host), TOKENS["expired"])


def test_a_new_key_is_fetched_when_a_token_has_it(tmp_path: Path) -> None:
    settings = ("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms=1",)
    with issuing() as issuer:
        keys = f"{JWKS_KEY}={issuer.url('/keys')}"
        with running_host(tmp_path / "data", LISTENERS, ENABLED, keys, *settings) as host:
            issuer.keys = jwks(public_jwk(), public_jwk(name="next", kid="k2"))
            new = signed(claims_of("alice", time.time()), name="next", kid="k2")

            with pytest.raises(RequestFailed):
                our_own(guarded(host), lambda: new)
            wait_until(lambda: len(key_set(host).keys) == 2, "the new key is not fetched")

            assert our_own(guarded(host), lambda: new) == 1


def key_set(host: ThreadedHost) -> Any:
    (found,) = host.host.authentications.key_sets.values()
    return found


def test_a_host_starts_while_its_issuer_is_down(tmp_path: Path) -> None:
    keys = f"{JWKS_KEY}=http://127.0.0.1:1/keys"

    with running_host(tmp_path / "data", LISTENERS, ENABLED, keys) as host:
        failures = key_set(host).failures
        with pytest.raises(RequestFailed, match="invalid_token"):
            our_own(guarded(host), TOKENS["good"])

    assert failures >= 1


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ((), r"sasl\.oauthbearer\.jwks\.endpoint\.url: expected the address of the keys"),
        ((f"{JWKS_KEY}=http://issuer/keys",), "expected https://HOST/PATH"),
        ((f"{JWKS_KEY}=file:///none/keys",), r"file:///none/keys: .*No such file"),
    ],
)
def test_a_host_without_keys_does_not_start(tmp_path: Path, settings: tuple[str, ...], problem: str) -> None:
    with (
        pytest.raises(ConfigError, match=problem),
        running_host(tmp_path / "data", LISTENERS, ENABLED, *settings),
    ):
        pass


def test_listeners_have_their_own_mechanisms_and_tokens(tmp_path: Path, issuer: Issuer) -> None:
    settings = (
        "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT_DEV://127.0.0.1:0",
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms=SCRAM-SHA-256",
        "listener.name.sasl_plaintext_dev.sasl.enabled.mechanisms=OAUTHBEARER",
        f"listener.name.sasl_plaintext_dev.oauthbearer.{JWKS_KEY}={issuer.url('/keys')}",
        "listener.name.sasl_plaintext_dev.oauthbearer.sasl.oauthbearer.expected.audience=kafka",
    )
    with running_host(tmp_path / "data", *settings) as host:
        scram, dev = (f"127.0.0.1:{each.bound_port}" for each in host.host.listeners[1:])

        with pytest.raises(RequestFailed, match="the listener supports SCRAM-SHA-256"):
            our_own(scram, TOKENS["good"])
        with pytest.raises(RequestFailed, match="invalid_token"):
            our_own(dev, TOKENS["good"])
        served = our_own(dev, lambda: token(aud="kafka"))

    assert served == 1


class HalfSpeed(SystemClock):
    """Deadlines take twice their time, so a client that a busy machine delays is still in time."""

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() // 2


@pytest.mark.ci  # waits for real seconds
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "OAUTHBEARER"])
def test_librdkafka_authenticates_again_and_loses_nothing(
    tmp_path: Path, issuer: Issuer, mechanism: str
) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    settings = (LISTENERS, ENABLED, f"{JWKS_KEY}={issuer.url('/keys')}", "connections.max.reauth.ms=2400")
    with running_host(tmp_path / "data", *settings, clock=HalfSpeed()) as host:
        counts = host.host.listeners[1].counts
        with AdminClient(host.bootstrap) as admin:
            user = new_credential("alice", ScramMechanism.SCRAM_SHA_256, "secret", 4096, b"salt")
            admin.alter_user_scram_credentials(upsertions=[user])
        errors: list[Any] = []
        delivered: list[Any] = []
        producer = kafka.Producer(
            {
                "bootstrap.servers": guarded(host),
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": mechanism,
                "sasl.username": "alice",
                "sasl.password": "secret",
                "linger.ms": 0,
                "retries": 0,
                "error_cb": errors.append,
            }
            | ({"oauth_cb": lambda _: (token(), time.time() + 3_600)} if mechanism == "OAUTHBEARER" else {})
        )
        sent = 0

        def has_renewed_twice() -> bool:
            nonlocal sent
            producer.produce("again", b"value", on_delivery=lambda error, _: delivered.append(error))
            sent += 1
            producer.poll(0.005)
            return counts.succeeded_again >= 2

        wait_until(has_renewed_twice, lambda: counts)
        unsent = producer.flush(10)

    assert unsent == 0
    assert delivered == [None] * sent
    assert errors == []
    assert (counts.failed, counts.failed_again, counts.expired) == (0, 0, 0)
