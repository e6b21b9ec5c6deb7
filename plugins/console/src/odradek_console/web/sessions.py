"""Sessions, which browsers name by a cookie, and the tokens of their forms."""

from __future__ import annotations

import hmac
import secrets
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

Held = TypeVar("Held")
ID_BYTES: Final = 32
NONCE_BYTES: Final = 8
TIME_BYTES: Final = 8
DIGEST_BYTES: Final = 32


@dataclass(slots=True)
class Session(Generic[Held]):
    """A login, or one that was begun: a cookie has its id."""

    id: str
    owner: str
    """In whose share it is."""
    held: Held
    since_s: float
    used_s: float
    """The last request of a person; a page that refreshes itself does not count."""


class Sessions(Generic[Held]):
    """All of a kind, bounded in number and age. The owner with the most makes room with its idlest one.

    Args:
        most: The number of sessions.
        idle_s: A session ends after this time without a request of a person.
        age_s: A session ends this time after its beginning.
        now_s: A monotonic clock.
    """

    def __init__(self, most: int, idle_s: float, age_s: float, now_s: Callable[[], float]) -> None:
        self.most = most
        self.idle_s = idle_s
        self.age_s = age_s
        self.now_s = now_s
        self.sessions: OrderedDict[str, Session[Held]] = OrderedDict()
        """By id, the one that was used last at the end."""
        self.evicted = 0
        """Sessions that made room for others."""

    def open(self, owner: str, held: Held) -> Session[Held]:
        """Begin a session. Those that have ended make room first."""
        for session_id in list(self.sessions):
            self.find(session_id)
        while len(self.sessions) >= self.most:
            self.close(self.one_too_many(owner))
            self.evicted += 1
        now_s = self.now_s()
        session = Session(secrets.token_urlsafe(ID_BYTES), owner, held, now_s, now_s)
        self.sessions[session.id] = session
        return session

    def one_too_many(self, newest: str) -> str:
        """The id of a session that makes room for one of an owner. It is of the owner with the most."""
        counts = Counter([newest, *(each.owner for each in self.sessions.values())])
        (owner, _), *_ = counts.most_common(1)
        return next(each.id for each in self.sessions.values() if each.owner == owner)

    def find(self, session_id: str) -> Session[Held] | None:
        """The session of an id; None if there is none, or if it has ended."""
        session = self.sessions.get(session_id)
        if session is None:
            return None
        now_s = self.now_s()
        if now_s - session.used_s > self.idle_s or now_s - session.since_s > self.age_s:
            self.close(session_id)
            return None
        return session

    def touch(self, session: Session[Held]) -> None:
        """A person has used a session."""
        session.used_s = self.now_s()
        self.sessions.move_to_end(session.id)

    def close(self, session_id: str) -> None:
        """End a session; nothing happens if there is none."""
        self.sessions.pop(session_id, None)


def secret() -> str:
    return secrets.token_urlsafe(ID_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A login that was begun in a browser, until the provider leads the browser back."""

    redirect_uri: str
    """Where the provider leads the browser back to."""
    after: str
    """The page to go to then."""
    session: str
    """The id of the browser's session before the login; empty without one."""
    state: str = field(default_factory=secret)
    nonce: str = field(default_factory=secret)
    verifier: str = field(default_factory=secret)
    """The secret of PKCE."""


class FormTokens:
    """Tokens that prove that a form came from a page of this user (CSRF).

    Each one is different, so that a compressed page does not give it away, and none is stored.

    Args:
        age_s: A form is refused after this time.
        now_s: A monotonic clock.
    """

    def __init__(self, age_s: float, now_s: Callable[[], float]) -> None:
        self.age_s = age_s
        self.now_s = now_s
        self.secret = secrets.token_bytes(DIGEST_BYTES)

    def make(self, key: str) -> str:
        """A token.

        Args:
            key: The session; or the name of a user without one.
        """
        made = secrets.token_bytes(NONCE_BYTES) + int(self.now_s()).to_bytes(TIME_BYTES)
        return (made + self.digest(made, key)).hex()

    def is_valid(self, key: str, text: str) -> bool:
        """Whether a text is a token that was made for a key not too long ago."""
        try:
            raw = bytes.fromhex(text)
        except ValueError:
            return False
        made, digest = raw[: NONCE_BYTES + TIME_BYTES], raw[NONCE_BYTES + TIME_BYTES :]
        if not hmac.compare_digest(digest, self.digest(made, key)):
            return False
        return self.now_s() - int.from_bytes(made[NONCE_BYTES:]) <= self.age_s

    def digest(self, made: bytes, key: str) -> bytes:
        return hmac.digest(self.secret, made + key.encode(), "sha256")
