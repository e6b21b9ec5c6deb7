"""Java clients and tools on SSL and SASL_SSL listeners, with stores in PEM, and clients that are refused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration.java.console_tools import ConsoleTools
from integration.java.jvm import Jvm
from support.certificates import Files
from support.hosts import EVERYTHING, ServeProcess, serving
from support.issuer import JWKS_KEY
from support.tokens import claims_of, jwks, signed

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
SECURITY = "org.apache.kafka.common.security"
OAUTH = f"{SECURITY}.oauthbearer"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
USER, PASSWORD = "admin", "admin-secret"
SETTINGS = (
    "listeners=PLAINTEXT://127.0.0.1:0,SSL://localhost:0,SSL_MUTUAL://localhost:0,SSL_ELSEWHERE://localhost:0,"
    "SASL_SSL://localhost:0",
    "listener.name.ssl_mutual.ssl.client.auth=required",
    "listener.name.ssl_mutual.ssl.principal.mapping.rules=RULE:^CN=(.*)$/$1/U",
    "sasl.enabled.mechanisms=SCRAM-SHA-512,OAUTHBEARER",
    "authorizer.class.name=StandardAuthorizer",
    f"super.users=User:ANONYMOUS;User:ALICE;User:{USER};User:bearer",
    "group.initial.rebalance.delay.ms=0",
    *EVERYTHING,
)


@dataclass(frozen=True, slots=True)
class TlsHost:
    """A host with each kind of TLS listener, and the files of its clients."""

    serve: ServeProcess
    files: Files
    jvm: Jvm

    def tools(self, name: str, jvm: Jvm | None = None) -> ConsoleTools:
        """The tools for a listener."""
        listeners = self.serve.ready.split("listeners=")[1].split(" ")[0].split(",")
        addresses = dict(each.split("://") for each in listeners)
        return ConsoleTools(jvm or self.jvm, addresses[name])

    def properties(self, name: str, **more: str) -> tuple[str, str]:
        """The option of the tools that names a file with the settings for a listener. A name in ``more`` has
        underscores for dots.
        """
        lines = {
            "security.protocol": name.partition("_")[0] if name.startswith("SSL") else name,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.files.ca,
        }
        if name == "SSL_MUTUAL":
            lines |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": self.files.client}
        if name == "SASL_SSL":
            lines |= scram(PASSWORD)
        lines |= {key.replace("_", "."): value for key, value in more.items()}
        text = "".join(f"{key}={value}\n" for key, value in lines.items())
        return "--command-config", self.files.write("java.properties", text)


def scram(password: str) -> dict[str, str]:
    """The settings of a login."""
    module = f"{SECURITY}.scram.ScramLoginModule required"
    return {
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{module} username="{USER}" password="{password}";',
    }


@pytest.fixture(scope="module")
def host(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsHost]:
    folder = tmp_path_factory.mktemp("java-tls")
    files = Files(folder)
    keys = folder / "keys.json"
    keys.write_bytes(jwks())
    elsewhere = f"listener.name.ssl_elsewhere.ssl.keystore.location={files.elsewhere}"
    settings = [*SETTINGS, *files.settings, elsewhere, f"{JWKS_KEY}={keys.as_uri()}"]
    arguments = [part for each in settings for part in ("--set", each)]
    with serving(folder / "data", *arguments, "--plugin", "stdout") as serve:
        started = TlsHost(serve, files, jvm)
        add = ("--alter", "--add-config", f"SCRAM-SHA-512=[password={PASSWORD}]")
        started.tools("PLAINTEXT").succeed(
            "kafka-configs", "--entity-type", "users", "--entity-name", USER, *add
        )
        yield started


def exchanged(tools: ConsoleTools, topic: str, *client: str) -> list[str]:
    """Produce two lines; the lines that a member of a group reads."""
    tools.produce_lines(topic, ["one", "two"], *client)
    return tools.consume_lines(topic, 2, "--group", topic, "--from-beginning", *client)


@pytest.mark.parametrize(
    ("name", "principal"),
    [("SSL", "ANONYMOUS"), ("SSL_MUTUAL", "ALICE"), ("SASL_SSL", USER)],
)
def test_a_java_producer_and_consumer_connect_and_push(host: TlsHost, name: str, principal: str) -> None:
    lines = exchanged(host.tools(name), f"java-{name}", *host.properties(name))
    push = host.serve.next_push(lambda row: row["context"]["principal"] == f"User:{principal}")

    assert lines == ["one", "two"]
    assert push["context"]["client_software_name"] == "apache-kafka-java"


def test_a_java_client_logs_in_with_a_token(
    host: TlsHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text(signed(claims_of("bearer", time.time())))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-D{ALLOWED}={token.as_uri()}")
    login = {
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_login_callback_handler_class": f"{OAUTH}.OAuthBearerLoginCallbackHandler",
        "sasl_jaas_config": f"{OAUTH}.OAuthBearerLoginModule required;",
        "sasl_oauthbearer_token_endpoint_url": token.as_uri(),
    }
    tools = host.tools("SASL_SSL", host.jvm.apart)

    # Several push intervals, also on a slow machine.
    lasting = ("--num-records", "200", "--throughput", "40", "--record-size", "10")
    client = host.properties("SASL_SSL", **login)
    tools.succeed("kafka-producer-perf-test", "--topic", "java-token", *lasting, *client)

    push = host.serve.next_push(lambda row: row["context"]["principal"] == "User:bearer")
    assert push["context"]["client_software_name"] == "apache-kafka-java"


@pytest.mark.parametrize(
    ("name", "more", "why"),
    [
        ("SSL", {"ssl_truststore_location": "other_ca"}, "PKIX path"),
        ("SSL_ELSEWHERE", {}, "No subject alternative DNS name matching localhost found"),
        ("SSL_MUTUAL", {"ssl_keystore_location": "stranger"}, "Received fatal alert: unknown_ca"),
        (
            "SASL_SSL",
            scram("guess"),
            "Authentication failed during authentication due to invalid credentials",
        ),
    ],
    ids=["unknown-ca", "another-name", "certificate-of-another-ca", "wrong-password"],
)
def test_a_java_client_is_refused_with_the_reason(
    host: TlsHost, name: str, more: dict[str, str], why: str
) -> None:
    changed = {
        key: getattr(host.files, value) if key.endswith("location") else value for key, value in more.items()
    }

    finished = host.tools(name).run("kafka-topics", *host.properties(name, **changed), "--list")

    assert finished.status == 1
    assert why in finished.said
    assert ("SslAuthenticationException" in finished.said) == name.startswith("SSL")


@pytest.mark.parametrize(
    ("name", "protocol", "more", "why"),
    [
        (
            "SASL_SSL",
            "SSL",
            {"default_api_timeout_ms": "1500", "request_timeout_ms": "1000"},
            "Timed out waiting for a node assignment. Call: listTopics",
        ),
        (
            "SSL",
            "SASL_SSL",
            scram(PASSWORD),
            "Unexpected handshake request with client mechanism SCRAM-SHA-512, enabled mechanisms are []",
        ),
    ],
    ids=["ssl-at-sasl-ssl", "sasl-ssl-at-ssl"],
)
def test_a_java_client_with_another_protocol_is_told_what_kafka_tells_it(
    host: TlsHost, name: str, protocol: str, more: dict[str, str], why: str
) -> None:
    properties = host.properties(name, security_protocol=protocol, **more)

    finished = host.tools(name).run("kafka-topics", *properties, "--list")

    assert finished.status == 1
    assert why in finished.said


def test_kafkas_tools_administer_the_host_over_sasl_ssl(host: TlsHost) -> None:
    tools, client = host.tools("SASL_SSL"), host.properties("SASL_SSL")
    quota = ("--entity-type", "clients", "--entity-name", "slow")
    read = ("--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders")

    tools.succeed("kafka-configs", *client, *quota, "--alter", "--add-config", "producer_byte_rate=1000")
    described = tools.succeed("kafka-configs", *client, *quota, "--describe")
    tools.succeed("kafka-acls", *client, "--add", *read)
    listed = tools.succeed("kafka-acls", *client, "--list", "--topic", "orders")

    assert "producer_byte_rate=1000.0" in " ".join(described)
    assert "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)" in " ".join(listed)
