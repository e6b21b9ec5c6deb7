"""The security of ``odradek demo --secure``: certificates, users, and the rights that each of them needs."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

from odradek.broker.broker import Broker
from odradek.cli.certs import CA_CERTIFICATE, SERVER, write
from odradek.client.users import new_credential
from odradek.plugin.authorizer import WILDCARD, AclOperation, AclPermission, PatternType, ResourceType
from odradek.security.acl import Acl, AclEntry, ResourcePattern
from odradek.security.scram import DEFAULT_ITERATIONS, ScramMechanism
from odradek.security.scram_credential import SALT_BYTES
from odradek.steps import result_of

PRODUCER, CONSUMER, PIPELINE = "demo-producer", "demo-consumer", "demo-pipeline"
MECHANISM: Final = ScramMechanism.SCRAM_SHA_256
TOPIC, GROUP = "demo", "demo"
RIGHTS: Final = (
    (PRODUCER, AclOperation.CREATE, ResourceType.TOPIC, TOPIC),
    (PRODUCER, AclOperation.WRITE, ResourceType.TOPIC, TOPIC),
    (CONSUMER, AclOperation.READ, ResourceType.TOPIC, TOPIC),
    (CONSUMER, AclOperation.READ, ResourceType.GROUP, GROUP),
    (PIPELINE, AclOperation.READ, ResourceType.TOPIC, "__client_telemetry"),
)
"""All that the users may do. A push needs no right, as in Kafka."""


class DemoSecurity:
    """The files and users of one demo.

    Args:
        folder: Where to write certificates and the pipeline's properties file.

    Raises:
        CommandFailed: The package cryptography is missing, or a file cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        write(folder)
        self.folder = folder
        self.authority = folder / CA_CERTIFICATE
        self.passwords = {user: secrets.token_urlsafe(16) for user in (PRODUCER, CONSUMER, PIPELINE)}

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

    def command_config(self) -> Path:
        """Write the pipeline's properties file; return its path."""
        path = self.folder / "pipeline.properties"
        path.touch(mode=0o600)
        lines = (f"{key}={value}\n" for key, value in self.client_settings(PIPELINE).items())
        path.write_text("".join(lines), encoding="utf-8")
        return path


def allowed(user: str, operation: AclOperation, resource_type: ResourceType, name: str) -> Acl:
    """The ACL that allows a user one operation on one resource, from every address."""
    entry = AclEntry(f"User:{user}", WILDCARD, operation, AclPermission.ALLOW)
    return Acl(ResourcePattern(resource_type, name, PatternType.LITERAL), entry)
