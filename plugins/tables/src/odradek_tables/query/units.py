"""Units of metrics, and values in units that people read: 6.2 s, 3.4 MiB/s, 12 %, 1,234."""

from __future__ import annotations

import math
from typing import Final

NO_UNIT: Final = ""
SHARE: Final = "ratio"
UNITS: Final = (
    (".time.ns.", "ns"),
    ("ratio", SHARE),
    ("compression.rate", SHARE),
    (".rate.per.hour.", "per h"),
    ("byte.rate.", "bytes per s"),
    ("bytes.consumed.rate.", "bytes per s"),
    (".rate.", "per s"),
    ("latency", "ms"),
    ("seconds.ago", "s"),
    (".age.", "s"),
    (".time.", "ms"),
    ("bytes", "bytes"),
    (".byte.", "bytes"),
    ("size", "bytes"),
)
"""Parts of metric names, and their units in Kafka's documentation, for clients that send no unit."""
TIMES: Final = (
    ("ns", 1e-9),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("min", 60.0),
    ("h", 3600.0),
    ("d", 86400.0),
)
BYTES: Final = (("B", 1.0), ("KiB", 2.0**10), ("MiB", 2.0**20), ("GiB", 2.0**30), ("TiB", 2.0**40))
RATES: Final = (("per h", 1 / 3600), ("per min", 1 / 60), ("per s", 1.0))
LADDERS: Final = (
    {name: (TIMES, size) for name, size in TIMES}
    | dict.fromkeys(("bytes", "By", "B"), (BYTES, 1.0))
    | {name: (RATES, size) for name, size in RATES}
)
"""By unit: the units to choose from with their sizes, and the unit's own size."""
SWITCH: Final = {"min": 3.0, "h": 2.0, "d": 2.0}
"""A longer unit of time is used from this many on; any other unit from one on."""


def unit_of(name: str, unit: str | None) -> str:
    """The unit of a metric: the client's, or one derived from the name; empty for counts."""
    return unit or next((found for part, found in UNITS if part in f".{name}."), NO_UNIT)


def said(value: float | None, unit: str) -> str:
    """A value in the unit in which it is at least one; ``-`` for none."""
    if value is None:
        return "-"
    name, size = unit_for(abs(value) if math.isfinite(value) else 0.0, unit)
    gap = "" if not name or name.startswith(("/", "%")) else " "
    return f"{number(value / size)}{gap}{name}"


def unit_for(value: float, unit: str) -> tuple[str, float]:
    """A unit for people, and how many of the metric's units it is."""
    if unit == SHARE or unit.startswith("share"):
        return "%" + unit.removeprefix(SHARE).removeprefix("share"), 0.01
    base, rest = unit, ""
    for of in (" in ", " per "):
        head, separator, tail = unit.partition(of)
        if head in LADDERS and separator:
            base, rest = head, of + tail
    if base not in LADDERS:
        return unit, 1.0
    ladder, own = LADDERS[base]
    steps = [each for each in ladder if each[1] >= own or ladder is RATES]  # never finer than the client
    fitting = [each for each in steps if value * own >= each[1] * SWITCH.get(each[0], 1.0)]
    name, size = fitting[-1] if fitting else next(each for each in ladder if each[1] == own)
    return (name + rest).replace("per ", "/").replace(" /", "/"), size / own


def number(value: float) -> str:
    """A number in three digits, or whole with commas between thousands."""
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 100 or value == round(value):
        return f"{value:,.0f}"
    if abs(value) < 0.001:
        return f"{value:.2g}"
    digits = 2 - math.floor(math.log10(abs(value)))
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")


def duration(seconds: float) -> str:
    """A time in its two largest units: 3 min, 1 h 20 min."""
    whole = round(seconds)
    parts = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s")]
    first = next((index for index, (count, _) in enumerate(parts) if count), 3)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count) or "0 s"
