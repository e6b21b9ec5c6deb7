"""Settings of the authorizer, under Kafka's own keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from odradek.plugin.authorizer import Decision
from odradek.plugin.config import ConfigError, PluginConfig
from odradek.settings.kinds import INT, TEXT, Special, Whole
from odradek.settings.setting import setting
from odradek.wire.config_resource import ConfigType

CLASS_KEY: Final = "authorizer.class.name"
SUPER_USERS_KEY: Final = "super.users"
STANDARD: Final = "StandardAuthorizer"
STANDARD_NAMES: Final = (STANDARD, "org.apache.kafka.metadata.authorizer.StandardAuthorizer")
SUPER_USER: Final = Decision(True, "SuperUser")
"""About everything that a super user asks for."""


def principals(text: str) -> tuple[str, ...]:
    """Return the principals of a text, separated by semicolons: names of certificates have commas.

    Raises:
        ValueError: One of them has no type.
    """
    found = tuple(filter(None, map(str.strip, text.split(";"))))
    for principal in found:
        if ":" not in principal:
            raise ValueError(f"expected <type>:<name>, such as User:{principal}, found {principal!r}")
    return found


def read_principals(table: PluginConfig, key: str) -> tuple[str, ...]:
    """Read principals that are separated by semicolons, or a list of them."""
    value = table.value(key)
    text = ";".join(table.texts(key)) if isinstance(value, list) else table.text(key) or ""
    try:
        return principals(text)
    except ValueError as error:
        raise table.error(key, str(error)) from None


def is_true(value: object) -> bool:
    """Whether a flag is set, as Kafka's authorizer reads it: everything but "true" is false."""
    return str(value).strip().lower() == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizerSettings:
    """Settings of the authorizer."""

    # fmt: off
    class_name: str = setting(
        CLASS_KEY, TEXT, "",
        "Decides what clients may do: `StandardAuthorizer`, which has Kafka's ACLs, or the name of a plugin "
        "that offers an authorizer; without one, clients may do everything.",
        unset="none", page="../howto/authorize-clients.md",
    )
    super_users: tuple[str, ...] = setting(
        SUPER_USERS_KEY,
        Special(type=ConfigType.STRING, shape="text", read=read_principals, parse=principals, text=";".join),
        (),
        "Principals that may do everything, separated by semicolons: `User:admin;User:ops`; required with "
        "`StandardAuthorizer`.",
    )
    allow_everyone: bool = setting(
        "allow.everyone.if.no.acl.found",
        Special(
            type=ConfigType.BOOLEAN, shape="boolean",
            read=lambda table, key: is_true(table.value(key)), parse=is_true,
            text=lambda value: str(value).lower(),
        ),
        False,
        "Whether clients may do everything with a resource that no ACL is about.",
    )
    max_acls: int = setting(
        "acls.max", Whole(INT, 1), 50_000, "Most ACLs; each takes 1 kB of memory.", unit="ACLs",
    )
    # fmt: on

    @property
    def is_standard(self) -> bool:
        """Whether the host's own authorizer decides."""
        return self.class_name in STANDARD_NAMES

    def check(self) -> None:
        """Check that the first ACLs can be created.

        Raises:
            ConfigError: There is no super user.
        """
        if self.is_standard and not self.super_users:
            raise ConfigError(
                SUPER_USERS_KEY,
                f"{CLASS_KEY} is set, but without a super user no client may create ACLs; name the "
                "principals of the administrators, such as User:admin",
            )
