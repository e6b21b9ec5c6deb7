"""TLS on both sides of a gateway, and SASL through it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.cli.main import run
from odradek.client.admin import AdminClient
from odradek.client.users import new_credential
from odradek.security.scram import ScramMechanism
from support.certificates import Files
from support.gateways import GatewayProcess, gateway_of
from support.hosts import EVERYTHING, running_host

pytestmark = pytest.mark.ci

MECHANISM = "SCRAM-SHA-256"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    folder = tmp_path_factory.mktemp("files")
    files = Files(folder)
    listeners = "listeners=PLAINTEXT://localhost:0,SASL_SSL://localhost:0"
    with running_host(folder / "host", listeners, "node.id=1", *files.settings, *EVERYTHING) as host:
        users = [
            new_credential(name, ScramMechanism.SCRAM_SHA_256, "secret", 4096, b"salt")
            for name in ("alice", "gateway")
        ]
        with AdminClient(host.bootstrap) as admin:
            admin.alter_user_scram_credentials(upsertions=users)
        own = files.write(
            "own.properties",
            f"security.protocol=SASL_SSL\nssl.truststore.type=PEM\nssl.truststore.location={files.ca}\n"
            f"sasl.mechanism={MECHANISM}\nsasl.username=gateway\nsasl.password=secret\n",
        )
        upstream = f"localhost:{host.host.listeners[1].bound_port}"
        settings = (
            "listeners=SSL://localhost:0",
            f"gateway.upstream.command.config={own}",
            "plugins.stdout.enabled=true",
            *files.settings,
        )
        with gateway_of(upstream, folder / "gateway", *settings) as process:
            yield process


def client(gateway: GatewayProcess, folder: Path, password: str = "secret") -> dict[str, Any]:
    return {
        "bootstrap.servers": gateway.bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": Files(folder).ca,
        "sasl.mechanism": MECHANISM,
        "sasl.username": "alice",
        "sasl.password": password,
        "client.id": "secure",
    }


def test_records_and_the_name_of_the_client_pass(gateway: GatewayProcess, tmp_path: Path) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    settings = client(gateway, tmp_path)
    producer = kafka.Producer(settings)
    producer.produce("secured", b"value" * 20_000)
    assert producer.flush(15) == 0
    push = gateway.next_push(lambda row: row["context"]["client_id"] == "secure")
    consumer = kafka.Consumer(settings | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["secured"])
    message = consumer.poll(15)
    consumer.close()
    producer.flush(1)

    assert message.value() == b"value" * 20_000
    assert push["context"]["principal"] == "User:alice"
    assert push["labels"]["principal_source"] == "sasl"


def test_a_wrong_password_is_refused_by_the_broker(gateway: GatewayProcess, tmp_path: Path) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    errors: list[str] = []
    producer = kafka.Producer(
        client(gateway, tmp_path, "wrong") | {"error_cb": lambda error: errors.append(error.str())}
    )
    producer.produce("secured", b"value")
    producer.flush(3)
    producer.purge()
    producer.flush(1)

    assert any("SCRAM-SHA-256" in error or "credentials" in error for error in errors)


def test_a_certificate_for_another_name_stops_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Files(tmp_path)
    settings = (
        f"data.dir={tmp_path / 'data'}",
        "listeners=SSL://localhost:0",
        f"ssl.keystore.location={files.elsewhere}",
    )
    monkeypatch.setattr("odradek.cli.gateway.log_to_stderr", lambda *_: None)

    status = run(
        ["gateway", "--upstream", "localhost:1", *(each for value in settings for each in ("--set", value))]
    )

    assert status == 2
    assert "the certificate is for DNS:other.example, but clients are told to dial 'localhost'" in (
        capsys.readouterr().err
    )
