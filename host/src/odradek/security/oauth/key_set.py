"""The keys of one JWKS, fetched again at intervals, and at once for a key id that is unknown.

After RefreshingHttpsJwks.java. The document is fetched elsewhere, so that nothing waits for the network: a
token with an unknown key is refused, and the client's next attempt finds the key. When a fetch fails, the old
keys stay.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from odradek.security.oauth.bearer_token import TokenRefused
from odradek.security.oauth.json_web_keys import (
    ALGORITHMS,
    MAX_KID_CHARS,
    VerificationKey,
    read_key_set,
)
from odradek.waiting.clock import Clock, Timer, TimerTask
from odradek.waiting.deferred import Offload

log = logging.getLogger(__name__)

MISSING_KIDS: Final = 16
"""Unknown key ids that are remembered (RefreshingHttpsJwks.MISSING_KEY_ID_CACHE_MAX_ENTRIES)."""
MISSING_KID_MS: Final = 60_000
"""How long an unknown key id causes no second fetch."""


@dataclass(frozen=True, slots=True)
class ChosenKey:
    """A public key, and the only algorithm that it may verify for a token."""

    public: Any
    algorithm: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshTimes:
    """The intervals of fetches, in milliseconds."""

    refresh_ms: int = 3_600_000
    retry_ms: int = 100
    """After the first failure; it doubles with each further one."""
    retry_max_ms: int = 10_000
    """Also the least time between two fetches for the sake of unknown key ids."""


@dataclass(eq=False)
class KeySet:
    """The current keys.

    Args:
        url: The address of the JWKS, for the log.
        fetch: Returns the document; it runs on a thread.
        times: The intervals of fetches.
        clock: The time.
        timer: Starts fetches.
        offload: Runs them.
    """

    url: str
    fetch: Callable[[], bytes]
    times: RefreshTimes
    clock: Clock
    timer: Timer
    offload: Offload
    keys: tuple[VerificationKey, ...] = ()
    fetching: bool = False
    failed_in_a_row: int = 0
    fetches: int = 0
    failures: int = 0
    fetched_ms: int | None = None
    """Monotonic time of the latest success; None before the first."""
    expedited_ms: int | None = None
    """Monotonic time of the latest fetch for an unknown key id."""
    missing: OrderedDict[str, int] = field(default_factory=OrderedDict)
    """Monotonic time of the fetch for each unknown key id."""
    task: TimerTask | None = None

    def find(self, kid: str | None, algorithm: str) -> ChosenKey:
        """Return the key of a token.

        Args:
            kid: The key id in the header of the token; None if it has none.
            algorithm: The algorithm in the header.

        Raises:
            TokenRefused: No key fits, or there is no key id and several keys fit.
        """
        if algorithm not in ALGORITHMS:
            raise TokenRefused(f"the algorithm {algorithm[:32]!r} is not accepted")
        fitting = [
            key for key in self.keys if algorithm in key.algorithms and (kid is None or key.kid == kid)
        ]
        if not fitting:
            self.expedite(kid)
            raise TokenRefused(f"no key fits: kid {kid!r:.200}, algorithm {algorithm}")
        if kid is None and len(fitting) > 1:
            raise TokenRefused(f"the token has no kid, and {len(fitting)} keys fit")
        return ChosenKey(fitting[0].public, algorithm)

    def expedite(self, kid: str | None) -> None:
        """Fetch at once because a key id is unknown, unless that was done a short time ago."""
        now_ms = self.clock.monotonic_ms()
        if kid is None or len(kid) > MAX_KID_CHARS or any(key.kid == kid for key in self.keys):
            return
        if self.expedited_ms is not None and now_ms - self.expedited_ms < self.times.retry_max_ms:
            return
        since_ms = self.missing.get(kid)
        if since_ms is not None and now_ms - since_ms < MISSING_KID_MS:
            return
        self.missing[kid] = self.expedited_ms = now_ms
        self.missing.move_to_end(kid)
        if len(self.missing) > MISSING_KIDS:
            self.missing.popitem(last=False)
        self.refresh()

    def refresh(self) -> None:
        """Fetch the document, unless that is under way."""
        if not self.fetching:
            self.fetching = True
            self.offload(self.load, self.loaded)

    def load(self) -> tuple[VerificationKey, ...]:
        """Fetch and read the document; runs on a thread."""
        return read_key_set(self.fetch())

    def loaded(self, outcome: tuple[VerificationKey, ...] | Exception) -> None:
        """Use the keys, or keep the old ones; and plan the next fetch."""
        self.fetching = False
        self.fetches += 1
        now_ms = self.clock.monotonic_ms()
        if isinstance(outcome, Exception):
            self.failures += 1
            after_ms = min(self.times.retry_ms << min(self.failed_in_a_row, 30), self.times.retry_max_ms)
            self.failed_in_a_row += 1
            if self.failed_in_a_row == 1:
                log.error(
                    "the keys of OAUTHBEARER cannot be fetched; the old ones stay, and it is tried again",
                    extra={"url": self.url, "keys": len(self.keys), "why": f"{outcome!s:.500}"},
                )
        else:
            if self.failed_in_a_row or {key.kid for key in outcome} != {key.kid for key in self.keys}:
                log.info("keys of OAUTHBEARER", extra={"url": self.url, "keys": len(outcome)})
            self.keys, self.fetched_ms, self.failed_in_a_row = outcome, now_ms, 0
            after_ms = self.times.refresh_ms
        self.stop()
        self.task = self.timer.schedule(now_ms + after_ms, self.refresh)

    def stop(self) -> None:
        """Plan no further fetch."""
        if self.task is not None:
            self.task.cancel()
            self.task = None
