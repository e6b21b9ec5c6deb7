"""The receiver's answers: which samples were stored, and whether the rest should be sent again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

WRITTEN: Final = "X-Prometheus-Remote-Write-{}-Written"
UNAUTHORIZED: Final = frozenset({401, 403})
WRONG_ADDRESS: Final = frozenset({404, 405})
AGAIN: Final = frozenset({408, 425, 429})
TOO_LARGE: Final = 413
UNSUPPORTED: Final = 415
BAD_REQUEST: Final = 400


class Reason(StrEnum):
    """Why a sample was not stored. Such a sample is not sent again."""

    DUPLICATE = "duplicate"
    """The series has another value at that time."""
    OUT_OF_ORDER = "out_of_order"
    """The series has a newer sample."""
    TOO_OLD = "too_old"
    TOO_FAR_AHEAD = "too_far_ahead"
    LABELS = "labels"
    TOO_LARGE = "too_large"
    """The receiver does not accept a request even of this one sample."""
    TOO_WIDE = "too_wide"
    """The buckets of an exponential histogram are wider than Prometheus has them. It is not sent."""
    OTHER = "other"


TEXTS: Final = (
    ("far in the future", Reason.TOO_FAR_AHEAD),
    ("far in future", Reason.TOO_FAR_AHEAD),
    ("duplicate sample", Reason.DUPLICATE),
    ("duplicate timestamp", Reason.DUPLICATE),
    ("too old", Reason.TOO_OLD),
    ("out of bounds", Reason.TOO_OLD),
    ("out of order", Reason.OUT_OF_ORDER),
    ("label", Reason.LABELS),
)
"""Parts of the messages of Prometheus and Mimir; the first that is found decides."""


class Written(NamedTuple):
    """The receiver's counts of what it stored (2.0)."""

    samples: int
    histograms: int


def written(headers: Mapping[str, str]) -> Written | None:
    """The counts of an answer; None without any."""
    found = [headers.get(WRITTEN.format(kind), "") for kind in ("Samples", "Histograms")]
    if not any(found):
        return None
    return Written(*[int(text) if text.isascii() and text.isdigit() else 0 for text in found])


def reason_of(line: str) -> Reason:
    """The reason that a line of an answer gives."""
    text = line.lower().replace("-", " ")
    return next((reason for part, reason in TEXTS if part in text), Reason.OTHER)


def reasons_of(message: str, rejected: int) -> Counter[str]:
    """The reasons for a number of samples.

    Prometheus writes a line for each; the first stands for missing ones.
    """
    lines = [reason_of(line) for line in message.splitlines() if line.strip()][:rejected]
    found: Counter[str] = Counter(lines)
    if rejected > len(lines):
        found[lines[0] if lines else Reason.OTHER] += rejected - len(lines)
    return found
