"""Client libraries: which one a client has, and what is known of its version."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from odradek.findings.client_metrics import client_metrics
from odradek.findings.troubles import JAVA, LIBRDKAFKA

DATA: Final = Path(__file__).with_suffix(".toml")
FRANZ_GO: Final = "franz-go"
CONFLUENT_PLATFORM: Final = "confluent-platform"
"""Confluent's builds of the Java client, which have the version of the platform."""
CONFLUENT_BUILDS: Final = ("-ce", "-ccs")
BINDINGS: Final = "confluent-kafka-"
"""Begin of the software names of bindings, which send the metrics of librdkafka."""
MARK: Final = "rdkafka"
"""A binding that tells the version of its librdkafka has this before it."""
SAME_VERSIONS: Final = (LIBRDKAFKA, *(BINDINGS + each for each in ("python", "go", "dotnet")))
"""Software whose versions are those of the librdkafka in it."""
NUMBERS: Final = re.compile(
    r"(\d+(?:\.\d+)*)(-0\.|[-._]?(?:rc|alpha|beta|dev|pre|snapshot|[abcm]\d))?", re.IGNORECASE
)
"""A version, and the begin of what marks it as one before the release."""
PARTS: Final = 4
KEPT: Final = 1_024
"""Answers that are kept: clients may send any name and version."""
DAY_MS: Final = 86_400_000

Version = tuple[int, ...]
"""Four numbers, and 0 for a release or -1 for what came before it; empty if nothing is known."""


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
class Silence:
    """A reason for which clients of a library stop pushing."""

    library: str
    problem: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """Versions that get no fixes."""

    library: str
    first: Version
    before: Version
    before_text: str
    ended_ms: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The data file."""

    defects: tuple[Defect, ...]
    silences: tuple[Silence, ...]
    supports: tuple[Support, ...]


@lru_cache(KEPT)
def library_of(software: str, version: str = "") -> str:
    """The library of a client; its ``client_software_name`` if that is none of a known binding."""
    name = software.lower()
    if name.startswith(BINDINGS) or MARK in name or MARK in version:
        return LIBRDKAFKA
    return FRANZ_GO if name in ("franz-go", "kgo") else name


def version_of(text: str) -> Version:
    """The version in a text, that of librdkafka where a binding tells both."""
    found = NUMBERS.search(text[:100].rpartition(MARK)[2])
    if found is None:
        return ()
    numbers = [int(number[:9]) for number in found[1].split(".")[:PARTS]]
    return (*numbers, *[0] * (PARTS - len(numbers)), -1 if found[2] else 0)


@lru_cache(KEPT)
def product_of(software: str, version: str) -> tuple[str, Version]:
    """The product that has versions of its own, and the version of a client."""
    library = library_of(software, version)
    if library == JAVA and version.endswith(CONFLUENT_BUILDS):
        library = CONFLUENT_PLATFORM
    if library == LIBRDKAFKA and MARK not in version and software.lower() not in SAME_VERSIONS:
        return library, ()
    return library, version_of(version)


def defect(row: Mapping[str, Any]) -> Defect:
    return Defect(
        library=row["library"],
        first=version_of(row.get("from", "")),
        fixed=version_of(row["fixed"]),
        fixed_text=row["fixed"],
        wrong=frozenset(row.get("wrong", ())),
        problem=row["problem"],
        source=row["source"],
    )


def support(row: Mapping[str, Any]) -> Support:
    return Support(
        library=row["library"],
        first=version_of(row.get("from", "")),
        before=version_of(row["before"]),
        before_text=row["before"],
        ended_ms=int(datetime.combine(row["ended"], datetime.min.time(), UTC).timestamp() * 1000),
        source=row["source"],
    )


@cache
def known() -> Known:
    """The data file."""
    table = tomllib.loads(DATA.read_text(encoding="utf-8"))
    return Known(
        defects=tuple(map(defect, table["defect"])),
        silences=tuple(Silence(**row) for row in table["silence"]),
        supports=tuple(map(support, table["support"])),
    )


@lru_cache(KEPT)
def defects_of(software: str, version: str) -> tuple[Defect, ...]:
    """The known defects of a client's library."""
    library, number = product_of(software, version)
    return tuple(
        each
        for each in known().defects
        if number and each.library == library and each.first <= number < each.fixed
    )


@lru_cache(KEPT)
def support_of(software: str, version: str) -> Support | None:
    """The end of support of a client's library; None if it is supported, or nothing is known."""
    library, number = product_of(software, version)
    return next(
        (
            each
            for each in known().supports
            if number and each.library == library and each.first <= number < each.before
        ),
        None,
    )


def silence_of(software: str, version: str) -> Silence | None:
    """A known reason for which clients of a library stop pushing; None if there is none."""
    library = library_of(software, version)
    return next((each for each in known().silences if each.library == library), None)


def reports(software: str, version: str, metric: str) -> bool:
    """Whether a client's library sends a metric. True for libraries and metrics that are not known."""
    found, library = client_metrics().get(metric), library_of(software, version)
    return found is None or library not in (JAVA, LIBRDKAFKA, FRANZ_GO) or library in found.software
