"""Proxies that are trusted to name the user and the address of a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from odradek.endpoints import parsed_ip
from odradek.settings import TEXT, declare
from odradek_console.setting_kinds import NETWORKS, Network
from odradek_console.web.users import LOCAL, Role, is_name

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.requests import HTTPConnection

USER_HEADER: Final = "X-Forwarded-User"


class BadProxy(ValueError):
    """A trusted proxy has sent headers that make no sense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxies:
    """The proxies, and their headers. Headers of any other address are ignored."""

    # fmt: off
    networks: tuple[Network, ...] = declare(
        "trusted.proxies", NETWORKS, (),
        "A proxy that logs users in, by its address or network.", unset="none",
        option="--trusted-proxy",
    )
    user_header: str = declare(
        "user.header", TEXT, USER_HEADER, "Header of trusted proxies with the user.",
    )
    role_header: str = declare(
        "role.header", TEXT, "",
        "Header of trusted proxies with the roles; without it all are viewers.",
        unset="none: all are viewers",
    )
    # fmt: on

    def is_trusted(self, address: str) -> bool:
        """Whether an address is one of a proxy."""
        found = parsed_ip(address)
        return found is not None and any(found in network for network in self.networks)

    def client_address(self, connection: HTTPConnection) -> str:
        """The address of the client: the last one of ``X-Forwarded-For`` that is not of a proxy."""
        found, chain = peer_of(connection), listed(connection.headers, "x-forwarded-for")
        while self.is_trusted(found) and chain and parsed_ip(chain[-1]) is not None:
            found = chain.pop()
        return str(parsed_ip(found) or found)

    def login(self, connection: HTTPConnection) -> tuple[str, Role] | None:
        """The user that a proxy names, with the role; None if no proxy names one.

        Raises:
            BadProxy: The headers are ambiguous, or give no role.
        """
        headers = connection.headers
        names = headers.getlist(self.user_header) if self.is_trusted(peer_of(connection)) else []
        if not names:
            return None
        if len(names) > 1 or not is_name(names[0]) or names[0] == LOCAL:
            raise BadProxy(f"the proxy has sent a {self.user_header} that is not the name of a user")
        return names[0], self.role(names[0], headers)

    def role(self, name: str, headers: Headers) -> Role:
        """The role of a user: the greatest that the header names."""
        if not self.role_header:
            return Role.VIEWER
        given = listed(headers, self.role_header)
        for role in (Role.OPERATOR, Role.VIEWER):
            if role in given:
                return role
        raise BadProxy(f"{self.role_header} gives {name} none of the roles {', '.join(Role)}")

    def forwarded(self, connection: HTTPConnection, name: str) -> str:
        """The value of a header that only a proxy may send; empty if there is none, or more than one."""
        values = connection.headers.getlist(name)
        return values[0].strip() if len(values) == 1 and self.is_trusted(peer_of(connection)) else ""


def peer_of(connection: HTTPConnection) -> str:
    """The address at the other end: a client or a proxy."""
    return connection.client.host if connection.client is not None else ""


def listed(headers: Headers, name: str) -> list[str]:
    """The parts of a header that is a list."""
    return [each.strip() for value in headers.getlist(name) for each in value.split(",")]


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    found = parsed_ip(host)
    return found.is_loopback if found is not None else host.lower() == "localhost"
