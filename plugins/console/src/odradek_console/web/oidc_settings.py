"""Settings for logins at an OpenID provider: whom it is asked for, and which of its groups may do what."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from odradek.endpoints import read_small_file
from odradek.endpoints.tls_context import default_context
from odradek.plugin import ConfigError
from odradek.settings import FILE, TEXT, Items, declare
from odradek_console.setting_kinds import ISSUER, SECONDS
from odradek_console.table_file import warn_of_readers
from odradek_console.web.proxies import is_loopback
from odradek_console.web.users import Role

EVERYBODY: Final = "*"
"""In the place of a group of viewers: all users of the provider."""
MISSING: Final = "logins at a provider need Authlib: pip install 'odradek-console[oidc]'"
LONGEST_SECRET: Final = 4_096
LONGEST: Final = 300
"""Characters of what the provider says, in messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """The provider, this console as its client, and the roles of groups."""

    # fmt: off
    issuer: str = declare(
        "oidc.issuer", ISSUER, "",
        "OpenID provider where users log in: an https URL, or http on this machine.", unset="none",
    )
    client_id: str = declare(
        "oidc.client.id", TEXT, "", "The id of this console at the provider.",
        unset="required with a provider",
    )
    secret: Path | None = declare(
        "oidc.client.secret.file", FILE, None,
        "File with the secret of this console at the provider. PKCE is used with and without one.",
        unset="none: a public client",
    )
    scopes: tuple[str, ...] = declare(
        "oidc.scopes", Items(), (), "A scope to ask for beside openid and profile.",
        unset="none", option="--oidc-scope",
    )
    label: str = declare(
        "oidc.label", TEXT, "", "The provider's name on the page for logging in; its host without one.",
        unset="the provider's host",
    )
    name_claim: str = declare(
        "oidc.name.claim", TEXT, "preferred_username",
        "The claim with the name of a user: one that users cannot change to another's.",
    )
    groups_claim: str = declare(
        "oidc.groups.claim", TEXT, "groups",
        "The claim with the groups of a user: a list, or one text.",
    )
    operators: tuple[str, ...] = declare(
        "oidc.operators", Items(), (), "A group whose users are operators.",
        unset="none", option="--oidc-operator",
    )
    viewers: tuple[str, ...] = declare(
        "oidc.viewers", Items(), (),
        "A group whose users are viewers. '*' is every user of the provider.",
        unset="none", option="--oidc-viewer",
    )
    ca: Path | None = declare(
        "oidc.ca", FILE, None,
        "PEM file of the CA of the provider's certificate, if the system does not know it.",
        unset="those of the system",
    )
    timeout_s: float = declare(
        "oidc.timeout.ms", SECONDS, 10.0, "Time of the provider to answer in each step of a login.",
        unit="ms", option="--oidc-timeout",
    )
    # fmt: on

    @property
    def name(self) -> str:
        """The provider, for people."""
        return self.label or urlsplit(self.issuer).netloc

    def role(self, groups: Collection[str]) -> Role | None:
        """The role of a user with groups; None if no group gives one."""
        if not set(self.operators).isdisjoint(groups):
            return Role.OPERATOR
        if EVERYBODY in self.viewers or not set(self.viewers).isdisjoint(groups):
            return Role.VIEWER
        return None

    def read_secret(self) -> str:
        """The secret of the client, as the file has it now; empty for a public client.

        Raises:
            ConfigError: There is none. The message never shows what is in the file.
        """
        if self.secret is None:
            return ""
        try:
            found = read_small_file(self.secret, LONGEST_SECRET).decode("ascii").strip()
        except OSError as error:
            raise ConfigError("--oidc-client-secret-file", f"cannot be read: {error.strerror}") from None
        except ValueError:
            found = ""
        if not found or not found.isprintable():
            raise ConfigError(
                "--oidc-client-secret-file", "expected a file with a line of printable ASCII characters"
            )
        return found

    def check_usable(self) -> None:
        """Check what can be known without the provider, which may be down.

        Raises:
            ConfigError: A setting is missing or wrong, or Authlib is not installed.
        """
        if not is_safe_address(self.issuer) or set(self.issuer) & {"?", "#"}:
            problem = f"expected https://HOST, or http:// on this machine, found {self.issuer!r}"
            raise ConfigError("--oidc-issuer", problem)
        if not self.client_id or not self.client_id.isprintable():
            raise ConfigError("--oidc-client-id", "expected the id of this console at the provider")
        self.check_roles()
        if importlib.util.find_spec("authlib") is None:
            raise ConfigError("--oidc-issuer", MISSING)
        if self.ca is not None:
            try:
                default_context(cafile=self.ca)
            except OSError as error:
                raise ConfigError("--oidc-ca", f"{self.ca}: {error}") from None
        if self.read_secret() and self.secret is not None:
            warn_of_readers(self.secret, "the client's secret", "chmod 600")

    def check_roles(self) -> None:
        """Check that some user would have a role, and not every user that of an operator.

        Raises:
            ConfigError: The groups are missing or wrong.
        """
        if EVERYBODY in self.operators:
            raise ConfigError("--oidc-operator", f"expected a group: {EVERYBODY} is for viewers only")
        if not self.operators and not self.viewers:
            problem = (
                "nobody would have a role: name groups with --oidc-operator or --oidc-viewer, or let all "
                f"users of the provider look with --oidc-viewer '{EVERYBODY}'"
            )
            raise ConfigError("--oidc-viewer", problem)


def is_safe_address(url: object) -> bool:
    """Whether the provider may be asked at an address: with TLS, or on this machine."""
    if not isinstance(url, str) or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    if not host or parts.username is not None:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
