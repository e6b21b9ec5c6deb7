"""Java clients with OAUTHBEARER: tokens from a file, refusals, and sessions that are renewed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.java.console_tools import ConsoleTools
from integration.java.jvm import Jvm
from support.hosts import ThreadedHost, running_host
from support.issuer import JWKS_KEY
from support.tokens import claims_of, jwks, signed

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]
OAUTH = "org.apache.kafka.common.security.oauthbearer"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
SETTINGS = (
    "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms=OAUTHBEARER",
    "connections.max.reauth.ms=2000",
)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    keys = tmp_path_factory.mktemp("keys") / "keys.json"
    keys.write_bytes(jwks())
    folder = tmp_path_factory.mktemp("oauth") / "data"
    with running_host(folder, *SETTINGS, f"{JWKS_KEY}={keys.as_uri()}") as started:
        yield started


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a token, which the JVM may read."""
    file = tmp_path / "token"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-D{ALLOWED}={file.as_uri()}")
    file.write_text(signed(claims_of("alice", time.time())))
    return file


@pytest.fixture
def client(token: Path) -> str:
    """The properties of a client with the token."""
    file = token.parent / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\n"
        "sasl.mechanism=OAUTHBEARER\n"
        f"sasl.login.callback.handler.class={OAUTH}.OAuthBearerLoginCallbackHandler\n"
        f"sasl.jaas.config={OAUTH}.OAuthBearerLoginModule required;\n"
        f"sasl.oauthbearer.token.endpoint.url={token.as_uri()}\n"
    )
    return str(file)


@pytest.fixture
def guarded(jvm: Jvm, host: ThreadedHost) -> ConsoleTools:
    """The tools, each in a JVM of its own that may read the file."""
    return ConsoleTools(jvm.apart, f"127.0.0.1:{host.host.listeners[1].bound_port}")


def test_a_java_producer_authenticates_again_and_loses_nothing(
    guarded: ConsoleTools, host: ThreadedHost, client: str
) -> None:
    counts = host.host.listeners[1].counts
    count = ("--num-records", "4000", "--throughput", "200", "--record-size", "10")

    printed = guarded.succeed(
        "kafka-producer-perf-test", "--topic", "again", *count, "--command-config", client
    )

    assert "4000 records sent" in printed[-1]
    assert counts.succeeded_again >= 2
    assert (counts.failed, counts.failed_again, counts.expired) == (0, 0, 0)


@pytest.mark.parametrize("kind", ["expired", "wrong signature"])
def test_a_java_client_is_refused(guarded: ConsoleTools, token: Path, client: str, kind: str) -> None:
    now_s = time.time()
    if kind == "expired":
        token.write_text(signed(claims_of("alice", now_s - 3_700, 3_600)))
    else:
        token.write_text(signed(claims_of("alice", now_s), name="other"))

    finished = guarded.run("kafka-topics", "--command-config", client, "--list")

    assert finished.status == 1
    assert "invalid_token" in finished.said
