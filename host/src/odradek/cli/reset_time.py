"""Times and durations on the command line, in the format of Kafka's tools."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import click

DURATION = re.compile(
    r"(?P<sign>[-+])?P(?:(?P<d>[-+]?\d+)D)?"
    r"(?P<time>T(?:(?P<h>[-+]?\d+)H)?(?:(?P<m>[-+]?\d+)M)?(?:(?P<s>[-+]?\d+(?:[.,]\d{1,9})?)S)?)?",
    re.ASCII | re.IGNORECASE,
)
"""An ISO 8601 duration as java.time.Duration parses it."""
UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000}


def at_datetime_ms(text: str) -> int:
    """Parse a time such as ``2024-05-17T10:00:00.000``, in UTC unless an offset like ``+02:00`` follows.

    Returns milliseconds since 1970.

    Raises:
        click.UsageError: The text has another form.
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
    """Parse a duration such as ``P1DT2H3M4.5S`` into milliseconds.

    Raises:
        click.UsageError: The text has another form.
    """
    read = DURATION.fullmatch(text)
    parts = {unit: read[unit] for unit in UNITS_MS if read[unit] is not None} if read else {}
    if read is None or not parts or (read["time"] or "").upper() == "T":
        raise click.UsageError(f"option --by-duration: expected PnDTnHnMnS, found {text!r}")
    total = sum(float(number.replace(",", ".")) * UNITS_MS[unit] for unit, number in parts.items())
    return round(-total if read["sign"] == "-" else total)
