"""The latest changes of subscriptions, as polls of the cluster show them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from odradek_console.json_form import JsonRow

KEPT: Final = 500
Properties = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionChange(JsonRow):
    """A change of a subscription."""

    time_ms: int
    """The poll that found it."""
    name: str
    act: str
    """``created``, ``changed`` or ``deleted``."""
    before: Properties
    """Empty if the subscription was created."""
    after: Properties
    """Empty if it was deleted."""
    user: str
    """The user of the console who made it; empty if it was made elsewhere."""

    @property
    def text(self) -> str:
        """The properties that differ, before and after."""
        keys = sorted({*self.before, *self.after})
        return ", ".join(
            f"{key}: {self.before.get(key, 'default')} → {self.after.get(key, 'default')}"
            if self.act == "changed"
            else f"{key}={(self.after or self.before)[key]}"
            for key in keys
            if self.before.get(key) != self.after.get(key)
        )


class SubscriptionHistory:
    """The latest changes. Any thread may call its methods.

    Args:
        kept: The most changes that are kept.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self.lock = threading.Lock()
        self.known: Mapping[str, Properties] | None = None
        self.found: deque[SubscriptionChange] = deque(maxlen=kept)
        self.users: dict[str, str] = {}

    @contextmanager
    def changed_by(self, name: str, user: str) -> Iterator[None]:
        """Note the user who changes a subscription in the body, unless that fails."""
        with self.lock:
            self.users[name] = user
            if len(self.users) > KEPT:  # of some, no poll sees a change
                del self.users[next(iter(self.users))]
        try:
            yield
        except BaseException:
            with self.lock:
                self.users.pop(name, None)
            raise

    def observe(self, subscriptions: Mapping[str, Properties], now_ms: int) -> None:
        """Compare with the subscriptions of the poll before. The first poll is no change."""
        with self.lock:
            known = subscriptions if self.known is None else self.known
            for name in sorted({*known, *subscriptions}):
                before, after = known.get(name, {}), subscriptions.get(name, {})
                if before != after:
                    user = self.users.pop(name, "")
                    act = "changed" if before and after else "created" if after else "deleted"
                    self.found.append(
                        SubscriptionChange(
                            time_ms=now_ms, name=name, act=act, before=before, after=after, user=user
                        )
                    )
            self.known = subscriptions

    def changes(self) -> list[SubscriptionChange]:
        """The changes, the newest first."""
        with self.lock:
            return list(reversed(self.found))
