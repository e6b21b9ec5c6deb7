"""A plugin's principals: labels of pushes, and clients that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError
from odradek.client.sasl import SaslLogin
from odradek.client.users import new_credential
from odradek.hosting.plugin_manager import load_plugins
from odradek.plugin import AuthenticationContext, PluginConfig, hookimpl
from odradek.security.scram import ScramMechanism
from support.hosts import EVERYTHING, running_host
from support.waiting import wait_until

TOPIC = "__client_telemetry"
LISTENERS = "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"


class Shouting:
    """Writes alice in capital letters, and refuses clients without SASL unless it is open to all."""

    def __init__(self, open_to_all: bool) -> None:
        self.open_to_all = open_to_all

    def principal(self, authentication: AuthenticationContext) -> str:
        if authentication.sasl_user is None and not self.open_to_all:
            raise LookupError("who are you")
        return authentication.principal.replace("alice", "ALICE")

    @hookimpl
    def odradek_principal_builder(self, config: PluginConfig) -> Shouting:
        return self


def test_a_push_has_the_principal_of_the_builder(tmp_path: Path) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    plugins = load_plugins()
    plugins.add("shouting", Shouting(open_to_all=True), distribution="test", version="1")
    with running_host(tmp_path / "data", LISTENERS, *EVERYTHING, plugins=plugins) as host:
        with AdminClient(host.bootstrap) as admin:
            user = new_credential("alice", ScramMechanism.SCRAM_SHA_256, "secret", 4096, b"salt")
            admin.alter_user_scram_credentials(upsertions=[user])
        producer = kafka.Producer(
            {
                "bootstrap.servers": f"127.0.0.1:{host.host.listeners[1].bound_port}",
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.username": "alice",
                "sasl.password": "secret",
            }
        )
        producer.produce("topic", b"value")
        producer.flush(10)
        reader = kafka.Consumer(
            {"bootstrap.servers": host.bootstrap, "group.id": "g", "enable.metrics.push": False}
        )
        reader.assign([kafka.TopicPartition(TOPIC, 0, 0)])

        def pushed() -> Any:
            producer.poll(0)
            return reader.poll(0.1)

        found = wait_until(pushed, "no push is in the topic")
        reader.close()

    assert dict(found.headers())["principal"] == b"User:ALICE"


def test_a_client_that_the_builder_refuses_is_disconnected(tmp_path: Path) -> None:
    plugins = load_plugins()
    plugins.add("shouting", Shouting(open_to_all=False), distribution="test", version="1")
    with running_host(tmp_path / "data", plugins=plugins) as host:
        with pytest.raises(ClientError), AdminClient(host.bootstrap, timeout_s=5) as admin:
            admin.describe_cluster()
        listener = host.host.listeners[0]

        assert (listener.counts.failed, listener.counts.succeeded) == (1, 0)


def test_sasl_says_why_it_failed_to_the_log_only(tmp_path: Path) -> None:
    plugins = load_plugins()

    class Failing(Shouting):
        def principal(self, authentication: AuthenticationContext) -> str:
            if authentication.sasl_user is None:
                return authentication.principal
            raise LookupError("a secret of the directory")

    plugins.add("failing", Failing(open_to_all=True), distribution="test", version="1")
    with running_host(tmp_path / "data", LISTENERS, plugins=plugins) as host:
        with AdminClient(host.bootstrap) as admin:
            user = new_credential("alice", ScramMechanism.SCRAM_SHA_256, "secret", 4096, b"salt")
            admin.alter_user_scram_credentials(upsertions=[user])
        guarded = f"127.0.0.1:{host.host.listeners[1].bound_port}"

        with (
            pytest.raises(ClientError, match="invalid credentials") as failure,
            AdminClient(guarded, login=SaslLogin("SCRAM-SHA-256", "alice", "secret")) as admin,
        ):
            admin.describe_cluster()

    assert "secret of" not in str(failure.value)
