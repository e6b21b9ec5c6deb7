"""TLS, users and ACLs of a host for tests, each from one argument."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from odradek.plugin.authorizer import CLUSTER_NAME, AclOperation, AclPermission, PatternType, ResourceType
from odradek.security.acl import Acl, AclEntry, ResourcePattern

ACL = re.compile(
    r"(?:User:)?(?P<user>\S+) (?P<deny>DENY )?(?P<operations>[A-Z_]+(?:,[A-Z_]+)*) "
    r"(?P<type>topic|group|transactional-id|cluster)(?::(?P<name>.+))?"
)
EXPECTED = "expected an ACL like 'alice READ,DESCRIBE topic:orders' or 'alice DENY WRITE topic:audit-*'"
ADMIN = "User:admin"
"""The super user of a host with ACLs, unless its configuration names others."""
MECHANISM = "SCRAM-SHA-256"


def acls_of(text: str) -> list[Acl]:
    """Return the ACLs of a text, one for each operation.

    A name that ends with ``*`` is a prefix; ``*`` alone is every name.

    Raises:
        ValueError: It is not of that form, or there is no such operation.
    """
    found = ACL.fullmatch(text)
    if found is None or (found["name"] is None) is not (found["type"] == "cluster"):
        raise ValueError(f"{EXPECTED}, found {text!r}")
    name, pattern_type = found["name"] or CLUSTER_NAME, PatternType.LITERAL
    if name.endswith("*") and name != "*":
        name, pattern_type = name[:-1], PatternType.PREFIXED
    kind = ResourceType[found["type"].upper().replace("-", "_")]
    permission = AclPermission.DENY if found["deny"] else AclPermission.ALLOW
    operations = found["operations"].split(",")
    if unknown := sorted(set(operations) - set(AclOperation.__members__)):
        raise ValueError(f"{EXPECTED}; there is no operation {', '.join(unknown)}")
    return [
        Acl(
            ResourcePattern(kind, name, pattern_type),
            AclEntry(f"User:{found['user']}", "*", AclOperation[operation], permission),
        )
        for operation in operations
    ]


@dataclass(slots=True)
class HostSecurity:
    """The arguments of `odradek.testing.host` about security."""

    tls: bool = False
    users: Mapping[str, str] = field(default_factory=dict)
    """Passwords by name."""
    acls: Sequence[str] | None = None
    """None for a host without an authorizer."""
    ca_file: Path | None = None
    """The certificate of the authority that clients must trust."""

    @property
    def protocol(self) -> str:
        """The security protocol of the listener."""
        sasl = "SASL_" if self.users else ""
        return f"{sasl}SSL" if self.tls else f"{sasl}PLAINTEXT"

    def settings(self, folder: Path) -> dict[str, object]:
        """Return settings of the host; write its certificates to a folder.

        Raises:
            ImportError: TLS needs the extra ``odradek[tls]``.
        """
        found: dict[str, object] = {"listeners": f"{self.protocol}://127.0.0.1:0"}
        if self.tls:
            key_store, self.ca_file = written_certificates(folder)
            found["ssl.keystore.location"] = str(key_store)
        if self.acls is not None:
            found |= {"authorizer.class.name": "StandardAuthorizer", "super.users": ADMIN}
        return found

    def client(self, bootstrap: str, user: str | None) -> dict[str, str]:
        """Return the settings of a librdkafka client.

        Raises:
            ValueError: There is no such user.
        """
        if user is None and self.users:
            user = next(iter(self.users))
        found = {"bootstrap.servers": bootstrap, "security.protocol": self.protocol}
        if self.ca_file is not None:
            found["ssl.ca.location"] = str(self.ca_file)
        if user is not None:
            if user not in self.users:
                raise ValueError(f"no user {user!r}: start the host with users={{{user!r}: PASSWORD}}")
            found |= {"sasl.mechanism": MECHANISM, "sasl.username": user, "sasl.password": self.users[user]}
        return found


def written_certificates(folder: Path) -> tuple[Path, Path]:
    """Make an authority and a certificate of this machine; return the key store and the authority's file."""
    from odradek.security.private_ca import LOOPBACK, PrivateCa

    authority = PrivateCa.new("odradek tests", datetime.now(UTC))
    key_store, ca_file = folder / "server.pem", folder / "ca.pem"
    key_store.touch(0o600)
    key_store.write_text(authority.issue(LOOPBACK[0], LOOPBACK).both, encoding="utf-8")
    ca_file.write_text(authority.issued.certificate, encoding="utf-8")
    return key_store, ca_file
