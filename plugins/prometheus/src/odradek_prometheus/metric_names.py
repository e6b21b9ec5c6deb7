"""Names of metrics, as otlptranslator 1.0.0 makes them by default.

A dashboard for the series of an OpenTelemetry collector, or of Prometheus' OTLP endpoint, serves these too.
"""

from __future__ import annotations

import re
from typing import Final

from odradek.temporality import Kind

TOKENS: Final = re.compile(r"[A-Za-z0-9:]+")
NOT_IN_TOKENS: Final = re.compile(r"[^A-Za-z0-9:]+")
UNITS: Final = {
    "d": "days",
    "h": "hours",
    "min": "minutes",
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
    "By": "bytes",
    "KiBy": "kibibytes",
    "MiBy": "mebibytes",
    "GiBy": "gibibytes",
    "TiBy": "tibibytes",
    "KBy": "kilobytes",
    "MBy": "megabytes",
    "GBy": "gigabytes",
    "TBy": "terabytes",
    "m": "meters",
    "V": "volts",
    "A": "amperes",
    "J": "joules",
    "W": "watts",
    "g": "grams",
    "Cel": "celsius",
    "Hz": "hertz",
    "1": "",
    "%": "percent",
}
"""Prometheus' words for units of UCUM; other units stay as they are."""
PER: Final = {"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week", "mo": "month", "y": "year"}


def escaped_name(name: str, unit: str, kind: int, prefix: str = "") -> str:
    """The name of a metric, with its unit and type; empty if nothing of the name is left.

    Args:
        name: The metric's name in OTLP.
        unit: Its unit in UCUM; may be empty.
        kind: A `Kind`.
        prefix: Put before the name as it is.
    """
    words = TOKENS.findall(name)
    words += [suffix for suffix in unit_suffixes(unit) if suffix and suffix not in words]
    if kind == Kind.COUNTER:
        words = [*[word for word in words if word != "total"], "total"]
    elif unit == "1" and kind in (Kind.GAUGE, Kind.SUM):
        words = [*[word for word in words if word != "ratio"], "ratio"]
    escaped = prefix + "_".join(words)
    return f"_{escaped}" if escaped[:1].isdigit() else escaped


def unit_suffixes(unit: str) -> tuple[str, str]:
    """The unit as suffixes of a name: ``By/s`` is bytes and per_second. Units in braces are left out."""
    main, _, per = unit.partition("/")
    main, per = main.strip(), per.strip()
    main = "" if braced(main) else clean_unit(UNITS.get(main, main))
    per = "" if braced(per) else clean_unit(PER.get(per, per)).removesuffix("_")
    return (main.removesuffix("_"), f"per_{per}") if per else (main, "")


def braced(unit: str) -> bool:
    return "{" in unit or "}" in unit


def clean_unit(unit: str) -> str:
    return NOT_IN_TOKENS.sub("_", unit).removeprefix("_")


def unit_of(name: str, unit: str) -> str:
    """The unit for ``# UNIT``; empty if the name does not end in it."""
    text = "_".join([suffix for suffix in unit_suffixes(unit) if suffix])
    return text if text and name.removesuffix("_total").endswith(f"_{text}") else ""
