"""Incidents: what a host or a gateway sees going wrong between clients and brokers, and when it is a trouble.

Clients do not tell of it. The reference of metrics has the labels of each sum.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

OBSERVED: Final = "io.odradek.observed.client."
FAILED_LOGINS: Final = OBSERVED + "failed.logins"
"""By ``mechanism``, ``user`` and ``address``."""
MINUTE_S: Final = 60.0
T = TypeVar("T")


def incident_troubles(trouble: Callable[..., T], everywhere: Callable[[str], object]) -> tuple[T, ...]:
    """The rows of the table of troubles.

    Args:
        trouble: Makes a row; see `troubles.Trouble`.
        everywhere: The metrics of a row that all client software has.
    """
    in_a_minute = partial(trouble, over_s=MINUTE_S, for_s=0.0)
    return (
        in_a_minute(
            id="failed-logins",
            question="Does a client fail to log in again and again?",
            metrics=everywhere(FAILED_LOGINS),
            labels=("mechanism", "user", "address"),
            op=">=",
            threshold=3.0,
            unit="logins in a minute",
            source="3 in a minute: a token that is being renewed fails once",
            advice="Look at the password or the token of the user; the audit log of the host has the reason.",
        ),
    )
