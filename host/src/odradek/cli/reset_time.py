"""Times on a command line, as Kafka's tools write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import click

DURATION = re.compile(
    r"(?P<sign>[-+])?P(?:(?P<d>[-+]?\d+)D)?"
    r"(?P<time>T(?:(?P<h>[-+]?\d+)H)?(?:(?P<m>[-+]?\d+)M)?(?:(?P<s>[-+]?\d+(?:[.,]\d{1,9})?)S)?)?",
    re.ASCII | re.IGNORECASE,
)
"""ISO 8601 as java.time.Duration reads it."""
UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000}


def at_datetime_ms(text: str) -> int:
    """Milliseconds since 1970 of ``2024-05-17T10:00:00.000``, of UTC unless ``+02:00`` follows.

    Raises:
        click.UsageError: It is not like that.
    """
    try:
        if "T" not in text:
            raise ValueError(text)
        read = datetime.fromisoformat(text)
    except ValueError:
        expected = "YYYY-MM-DDThh:mm:ss.sss"
        raise click.UsageError(f"option --to-datetime: expected {expected}, found {text!r}") from None
    moment = read if read.tzinfo else read.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def duration_ms(text: str) -> int:
    """Milliseconds of ``P1DT2H3M4.5S``.

    Raises:
        click.UsageError: It is not like that.
    """
    read = DURATION.fullmatch(text)
    parts = {unit: read[unit] for unit in UNITS_MS if read[unit] is not None} if read else {}
    if read is None or not parts or (read["time"] or "").upper() == "T":
        raise click.UsageError(f"option --by-duration: expected PnDTnHnMnS, found {text!r}")
    total = sum(float(number.replace(",", ".")) * UNITS_MS[unit] for unit, number in parts.items())
    return round(-total if read["sign"] == "-" else total)
