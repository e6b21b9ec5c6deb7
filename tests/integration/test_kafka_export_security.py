"""The Kafka export to hosts that ask for TLS, credentials or a token."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.client.admin import AdminClient
from odradek.client.users import new_credential
from odradek.plugin import Retry
from odradek.security.scram import ScramMechanism
from support.certificates import Files
from support.hosts import running_host
from support.kafka_export import TOPIC, deliver, read, record_of


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_a_target_may_need_tls(tmp_path: Path, protocol: str) -> None:
    files = Files(tmp_path)
    listeners = f"listeners=PLAINTEXT://127.0.0.1:0,{protocol}://localhost:0"
    own = f"listener.name.{protocol.lower()}.ssl.client.auth=required"
    with running_host(tmp_path / "target", listeners, *files.settings, own) as target:
        with AdminClient(target.bootstrap) as accounts:
            credential = new_credential("alice", ScramMechanism.SCRAM_SHA_256, "alice-secret", 4096, b"salt")
            accounts.alter_user_scram_credentials(upsertions=[credential])
        options = {
            "security.protocol": protocol,
            "ssl.ca.location": files.ca,
            "ssl.certificate.location": files.client,
            "ssl.key.location": files.client,
        }
        if protocol == "SASL_SSL":
            options |= {
                "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "alice", "sasl.password": "alice-secret"
            }  # fmt: skip
        table: dict[str, object] = {f"client.{key}": value for key, value in options.items()}
        outcomes = deliver(
            f"localhost:{target.host.listeners[1].bound_port}", [record_of(1), record_of(2)], **table
        )
        messages = read(target.bootstrap, TOPIC, 2)

    assert outcomes == [None]
    assert len(messages) == 2


@pytest.mark.parametrize("password", ["secret", "wrong"])
def test_credentials_are_accepted_or_the_reason_is_reported(tmp_path: Path, password: str) -> None:
    listeners = "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
    credential = new_credential("ann", ScramMechanism.SCRAM_SHA_512, "secret", 4096, b"salt of ann")
    table: dict[str, object] = {
        "deliver.timeout.ms": 30_000 if password == "secret" else 3_000,
        "client.security.protocol": "SASL_PLAINTEXT",
        "client.sasl.mechanism": "SCRAM-SHA-512",
        "client.sasl.username": "ann",
        "client.sasl.password": password,
    }

    with running_host(tmp_path, listeners, "sasl.enabled.mechanisms=SCRAM-SHA-512") as host:
        with AdminClient(host.bootstrap) as accounts:
            accounts.alter_user_scram_credentials(upsertions=[credential])
        (error,) = deliver(f"127.0.0.1:{host.host.listeners[1].bound_port}", [record_of(1)], **table)

    if password == "secret":
        assert error is None
    else:
        assert isinstance(error, Retry)
        assert "SASL authentication error" in str(error)
        assert "wrong" not in str(error)
