"""Client libraries: which one a client has, and what is known of its version."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final

from odradek.plugin.client_metrics import client_metrics
from odradek.plugin.troubles import JAVA, LIBRDKAFKA

DATA: Final = Path(__file__).with_suffix(".toml")
FRANZ_GO: Final = "franz-go"
BINDINGS: Final = ("confluent-", "rdkafka", "node-rdkafka", "rust-rdkafka")
"""Begins of the software names of bindings, which send the metrics of librdkafka."""
NUMBERS: Final = re.compile(r"\d+(?:\.\d+)*")
DAY_MS: Final = 86_400_000

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """A defect of some versions."""

    library: str
    first: Version
    fixed: Version
    fixed_text: str
    wrong: frozenset[str]
    problem: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """Versions that get no fixes."""

    library: str
    before: Version
    before_text: str
    ended_ms: int
    source: str


def library_of(software: str) -> str:
    """The library of a ``client_software_name``; the name itself if it is none of a known binding."""
    name = software.lower()
    if name.startswith(BINDINGS):
        return LIBRDKAFKA
    return FRANZ_GO if name in ("franz-go", "kgo") else name


def version_of(text: str) -> Version:
    """The numbers of a version, that of librdkafka where a binding tells both; empty without numbers."""
    found = NUMBERS.search(text[:100].rpartition("rdkafka")[2])
    return tuple(int(number[:9]) for number in found[0].split(".")[:4]) if found else ()


@cache
def known() -> tuple[tuple[Defect, ...], tuple[Support, ...]]:
    """The data file."""
    table = tomllib.loads(DATA.read_text(encoding="utf-8"))
    defects = tuple(
        Defect(
            library=row["library"],
            first=version_of(row.get("from", "")),
            fixed=version_of(row["fixed"]),
            fixed_text=row["fixed"],
            wrong=frozenset(row.get("wrong", ())),
            problem=row["problem"],
            source=row["source"],
        )
        for row in table["defect"]
    )
    supports = tuple(
        Support(
            library=row["library"],
            before=version_of(row["before"]),
            before_text=row["before"],
            ended_ms=int(datetime.combine(row["ended"], datetime.min.time(), UTC).timestamp() * 1000),
            source=row["source"],
        )
        for row in table["support"]
    )
    return defects, supports


@cache
def defects_of(software: str, version: str) -> tuple[Defect, ...]:
    """The known defects of a client's library."""
    library, number = library_of(software), version_of(version)
    return tuple(
        each
        for each in known()[0]
        if number and each.library == library and each.first <= number < each.fixed
    )


@cache
def support_of(software: str, version: str) -> Support | None:
    """The end of support of a client's library; None if it is supported, or nothing is known."""
    library, number = library_of(software), version_of(version)
    return next(
        (each for each in known()[1] if number and each.library == library and number < each.before), None
    )


def reports(software: str, metric: str) -> bool:
    """Whether a client's library sends a metric. True for libraries and metrics that are not known."""
    found, library = client_metrics().get(metric), library_of(software)
    return found is None or library not in (JAVA, LIBRDKAFKA, FRANZ_GO) or library in found.software
