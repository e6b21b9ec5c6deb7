"""The security of ``odradek demo --secure``: certificates, users, and the rights that each of them needs."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from odradek.broker.broker import Broker
from odradek.cli.certs import CA_CERTIFICATE, SERVER, write
from odradek.client.users import new_credential
from odradek.plugin.authorizer import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from odradek.security.acl import Acl, AclEntry, ResourcePattern
from odradek.security.scram import DEFAULT_ITERATIONS, ScramMechanism
from odradek.security.scram_credential import SALT_BYTES
from odradek.waiting.steps import result_of

PRODUCER, CONSUMER, SLOW_CONSUMER = "demo-producer", "demo-consumer", "demo-slow-consumer"
PIPELINE, CONSOLE = "demo-pipeline", "demo-console"
USERS: Final = (PRODUCER, CONSUMER, SLOW_CONSUMER, PIPELINE, CONSOLE)
MECHANISM: Final = ScramMechanism.SCRAM_SHA_256
TOPIC, GROUP, SLOW_GROUP = "demo", "demo", "demo-slow"
TELEMETRY, DEAD_LETTERS = "__client_telemetry", "__client_telemetry_dead_letter"
FORWARDER: Final = "odradek.forwarder.otlp"
RIGHTS: Final = (
    (PRODUCER, AclOperation.CREATE, ResourceType.TOPIC, TOPIC),
    (PRODUCER, AclOperation.WRITE, ResourceType.TOPIC, TOPIC),
    (CONSUMER, AclOperation.READ, ResourceType.TOPIC, TOPIC),
    (CONSUMER, AclOperation.READ, ResourceType.GROUP, GROUP),
    (SLOW_CONSUMER, AclOperation.READ, ResourceType.TOPIC, TOPIC),
    (SLOW_CONSUMER, AclOperation.READ, ResourceType.GROUP, SLOW_GROUP),
    (PIPELINE, AclOperation.READ, ResourceType.TOPIC, TELEMETRY),
    (CONSOLE, AclOperation.READ, ResourceType.TOPIC, TELEMETRY),
    (CONSOLE, AclOperation.READ, ResourceType.TOPIC, DEAD_LETTERS),
    (CONSOLE, AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, TELEMETRY),
    (CONSOLE, AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME),
    (CONSOLE, AclOperation.DESCRIBE, ResourceType.GROUP, FORWARDER),
)
"""All that the users may do. A push needs no right, as in Kafka."""


class DemoSecurity:
    """The files and users of one demo.

    Args:
        folder: Where to write certificates and files of properties.

    Raises:
        CommandFailed: The package cryptography is missing, or a file cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        write(folder)
        self.folder = folder
        self.authority = folder / CA_CERTIFICATE
        self.passwords = {user: secrets.token_urlsafe(16) for user in USERS}

    def settings(self) -> list[str]:
        """The settings of the host."""
        return [
            "listeners=SASL_SSL://127.0.0.1:0",
            f"ssl.keystore.location={self.folder / SERVER}",
            f"sasl.enabled.mechanisms={MECHANISM.mechanism_name}",
            "authorizer.class.name=StandardAuthorizer",
            "super.users=User:demo-admin",
        ]

    def prepare(self, broker: Broker) -> None:
        """Create the users and their ACLs.

        Raises:
            ApiError: One of them was refused.
        """
        changes = [
            new_credential(user, MECHANISM, password, DEFAULT_ITERATIONS, os.urandom(SALT_BYTES))
            for user, password in self.passwords.items()
        ]
        assert broker.acls is not None
        refusals = [
            *broker.credentials.alter([], changes).values(),
            *result_of(broker.acls.create_in_steps(allowed(*right) for right in RIGHTS)),
        ]
        for refusal in refusals:
            if refusal is not None:
                raise refusal

    def client_settings(self, user: str) -> dict[str, object]:
        """The settings of a librdkafka client."""
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.authority),
            "sasl.mechanism": MECHANISM.mechanism_name,
            "sasl.username": user,
            "sasl.password": self.passwords[user],
        }

    def librdkafka_config(self, user: str) -> Path:
        """The properties file of a program that uses librdkafka."""
        return self.written(user, self.client_settings(user))

    def command_config(self, user: str) -> Path:
        """The properties file of a command, with the keys of Kafka's tools."""
        settings = self.client_settings(user)
        authority = settings.pop("ssl.ca.location")
        return self.written(
            user, settings | {"ssl.truststore.location": authority, "ssl.truststore.type": "PEM"}
        )

    def written(self, user: str, settings: Mapping[str, object]) -> Path:
        """Write a properties file that only this user can read; return its path."""
        path = self.folder / f"{user}.properties"
        path.touch(mode=0o600)
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        return path


def allowed(user: str, operation: AclOperation, resource_type: ResourceType, name: str) -> Acl:
    """The ACL that allows a user one operation on one resource, from every address."""
    entry = AclEntry(f"User:{user}", WILDCARD, operation, AclPermission.ALLOW)
    return Acl(ResourcePattern(resource_type, name, PatternType.LITERAL), entry)
