"""The commands and our own client over SSL and SASL_SSL, and the reasons why they are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odradek.client.admin import AdminClient
from odradek.client.users import new_credential
from odradek.security.scram import ScramMechanism
from support.certificates import Files, authority, client, server
from support.hosts import ThreadedHost, running_host
from support.tools import Done, command_line

pytestmark = pytest.mark.ci

LISTENERS = (
    "listeners=PLAINTEXT://127.0.0.1:0,SSL://localhost:0,SASL_SSL://localhost:0,SSL_EXPIRED://localhost:0"
)
ELSEWHERE = "listeners=PLAINTEXT://127.0.0.1:0,SSL://localhost:0"
LOGIN = "sasl.mechanism=SCRAM-SHA-256\nsasl.username=alice\nsasl.password=alice-secret\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def host(files: Files) -> Iterator[ThreadedHost]:
    expired = f"listener.name.ssl_expired.ssl.keystore.location={files.expired}"
    settings = (LISTENERS, *files.settings, "listener.name.ssl.ssl.client.auth=required", expired)
    with running_host(files.folder / "data", *settings) as started:
        with AdminClient(started.bootstrap) as admin:
            credential = new_credential("alice", ScramMechanism.SCRAM_SHA_256, "alice-secret", 4096, b"salt")
            admin.alter_user_scram_credentials(upsertions=[credential])
        yield started


Topics = Callable[[ThreadedHost, int, str], Done]


@pytest.fixture
def topics(files: Files, capsys: pytest.CaptureFixture[str]) -> Topics:
    """Runs ``odradek topics --list`` at one listener, with these properties."""

    def run(host: ThreadedHost, number: int, properties: str) -> Done:
        config = files.write("client.properties", f"request.timeout.ms=5000\n{properties}")
        address = f"localhost:{host.host.listeners[number].bound_port}"
        return command_line(address, "topics", capsys)("--list", "--command-config", config)

    return run


def one_line(text: str) -> str:
    """PEM as the value of a property."""
    return text.replace("\n", "\\n")


@pytest.mark.parametrize("inline", [False, True])
def test_a_command_uses_ssl_with_a_client_certificate(
    host: ThreadedHost, files: Files, topics: Topics, inline: bool
) -> None:
    key_store = f"ssl.keystore.type=PEM\nssl.keystore.location={files.client}\n"
    if inline:
        key_store = (
            f"ssl.keystore.key={one_line(client().key)}\n"
            f"ssl.keystore.certificate.chain={one_line(client().certificate)}\n"
        )

    done = topics(host, 1, f"security.protocol=SSL\nssl.truststore.location={files.ca}\n{key_store}")

    assert (done.status, done.err) == (0, [])


def test_a_command_uses_sasl_ssl(host: ThreadedHost, files: Files, topics: Topics) -> None:
    done = topics(host, 2, f"security.protocol=SASL_SSL\nssl.truststore.location={files.ca}\n{LOGIN}")

    assert (done.status, done.err) == (0, [])


@pytest.mark.parametrize(
    ("number", "properties", "why"),
    [
        (2, "security.protocol=SASL_SSL\nssl.truststore.location={other_ca}\n" + LOGIN,
         "the certificate is refused: unable to get local issuer certificate"),
        (2, "security.protocol=SASL_SSL\n" + LOGIN, "the certificate is refused"),
        (1, "security.protocol=SSL\nssl.truststore.location={ca}\n", "certificate required"),
        (1, "security.protocol=SSL\nssl.truststore.location={ca}\nssl.keystore.location={stranger}\n",
         "unknown ca"),
        (0, "security.protocol=SSL\nssl.truststore.location={ca}\n", "is this a listener with TLS?"),
        (2, "security.protocol=SASL_PLAINTEXT\n" + LOGIN, "localhost"),
        (1, "security.protocol=SSL\nssl.truststore.location=nope.pem\n",
         "ssl.truststore.location: cannot read nope.pem: no such file or directory"),
        (3, "security.protocol=SSL\nssl.truststore.location={ca}\n",
         "the certificate is refused: certificate has expired"),
        (1, "security.protocol=SSL\nssl.truststore.location={ca}\nssl.keystore.location={expired_client}\n",
         "certificate expired"),
        (1, "security.protocol=SSL\nssl.truststore.location={ca}\nssl.keystore.location={encrypted}\n"
         "ssl.key.password=wrong\n", "is ssl.key.password right?"),
        (1, "security.protocol=SSL\nssl.truststore.location={ca}\nssl.keystore.location={mixed}\n",
         "the private key does not belong to the first certificate"),
    ],
    ids=["unknown-ca", "system-cas", "no-certificate", "stranger", "tls-to-plaintext", "plaintext-to-tls",
         "no-file", "expired", "expired-client", "wrong-key-password", "key-of-another"],
)  # fmt: skip
def test_a_command_says_why_it_cannot_connect(
    host: ThreadedHost, files: Files, topics: Topics, number: int, properties: str, why: str
) -> None:
    stores = {
        "stranger": files.stranger,
        "expired_client": files.expired_client,
        "encrypted": files.write("encrypted.pem", authority().issue("alice", password="right").both),
        "mixed": files.write("mixed.pem", server().key + client().certificate),
    }
    filled = properties.format(ca=files.ca, other_ca=files.other_ca, **stores)

    done = topics(host, number, filled)

    assert done.status != 0
    assert len(done.err) == 1
    assert why in done.err[0]


def test_the_name_is_checked_unless_the_check_is_switched_off(
    files: Files, topics: Topics, tmp_path: Path
) -> None:
    key_store = f"ssl.keystore.location={files.elsewhere}"
    trust = f"security.protocol=SSL\nssl.truststore.location={files.ca}\n"
    with running_host(tmp_path / "data", ELSEWHERE, key_store) as host:
        checked = topics(host, 1, trust)
        unchecked = topics(host, 1, trust + "ssl.endpoint.identification.algorithm=\n")

    assert "the certificate is refused: Hostname mismatch" in checked.err[0]
    assert (unchecked.status, unchecked.err) == (0, [])
