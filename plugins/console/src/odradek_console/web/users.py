"""Users of the pages, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.requests import Request

LOCAL: Final = "local"
"""The name of everybody on a loopback address without a login."""
MAX_NAME: Final = 256


class Role(StrEnum):
    """The rights of a user."""

    VIEWER = "viewer"
    """Look."""
    OPERATOR = "operator"
    """Look and act."""


@dataclass(frozen=True, slots=True)
class Login:
    """Whom a login has shown."""

    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class User:
    """A user, and where the request came from."""

    name: str
    role: Role
    address: str = ""

    @property
    def may_act(self) -> bool:
        """Whether the user may change something."""
        return self.role is Role.OPERATOR


def user_of(request: Request) -> User:
    found: User = request.state.user
    return found


def is_name(text: str) -> bool:
    """Whether a text can be the name of a user: short, and printable in one line."""
    return 0 < len(text) <= MAX_NAME and text.isprintable() and text == text.strip()
