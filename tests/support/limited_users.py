"""A host with an authorizer, and users with exactly the rights that a test gives them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from odradek.client.admin import AdminClient
from odradek.client.connection import Connection
from odradek.client.resources import NewTopic
from odradek.client.users import new_credential
from odradek.security.scram import ScramMechanism
from odradek.wire.messages.create_acls import CreateAclsRequest
from support.acls import creation
from support.hosts import EVERYTHING, ServeProcess, serving

SETTINGS = (
    "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms=SCRAM-SHA-256",
    "authorizer.class.name=StandardAuthorizer",
    "super.users=User:ANONYMOUS",
    *EVERYTHING,
)
MECHANISM = ScramMechanism.SCRAM_SHA_256
PASSWORD = "secret"
TOPIC = "orders"


@dataclass
class LimitedUsers:
    """Users of one host, and clients of the first listener, who may do everything."""

    serve: ServeProcess
    made: int = 0

    @property
    def guarded(self) -> str:
        """``host:port`` of the listener for users."""
        return self.serve.ready.split("SASL_PLAINTEXT://")[1].split(" ")[0]

    def with_rights(self, *rights: str) -> str:
        """The name of a new user with these rights and no others."""
        self.made += 1
        name = f"user-{self.made}"
        with AdminClient(self.serve.bootstrap) as admin:
            credential = new_credential(name, MECHANISM, PASSWORD, 4096, b"salt of a user")
            assert admin.alter_user_scram_credentials(upsertions=[credential]) == {name: None}
        host, _, port = self.serve.bootstrap.rpartition(":")
        with Connection(host, int(port)) as connection:
            acls = [creation(f"ALLOW User:{name} {right}") for right in rights]
            results = connection.send(CreateAclsRequest(creations=acls)).results
        assert not any(result.error_code for result in results)
        return name


@contextlib.contextmanager
def limited_users(data_dir: Path) -> Iterator[LimitedUsers]:
    """A host with the topic `TOPIC` that prints pushes."""
    settings = [part for each in SETTINGS for part in ("--set", each)]
    with serving(data_dir, *settings, "--plugin", "stdout") as serve:
        with AdminClient(serve.bootstrap) as admin:
            admin.create_topics([NewTopic(name=TOPIC)])
        yield LimitedUsers(serve)
