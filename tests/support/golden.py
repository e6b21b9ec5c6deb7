"""The recorded requests and answers of Apache Kafka, in ``tests/conformance/golden``.

``contrib/capture`` records one folder per version of Kafka; a scenario has the same file name in each. A file
is one connection to a fresh broker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "conformance" / "golden"
OLDER, NEWEST = VERSIONS = ("4.3.1", "4.4.0")


@dataclass(slots=True)
class Exchange:
    """A recorded request and Kafka's answer, without their length prefixes."""

    label: str
    request: bytes
    response: bytes | None = None
    """None if Kafka closed the connection or did not answer."""


def golden_files(*patterns: str, versions: Iterable[str] = VERSIONS) -> list[Path]:
    """The files whose names without ``.hex`` match a pattern."""
    return sorted(
        path
        for version in versions
        for pattern in patterns
        for path in GOLDEN.glob(f"{version}/{pattern}.hex")
    )


def golden_id(path: Path) -> str:
    """The version and the scenario of a file, as the id of a test."""
    return f"{path.parent.name}-{path.stem}"


def exchanges(path: Path) -> list[Exchange]:
    """The exchanges of a file, in order."""
    found: list[Exchange] = []
    label = ""
    for line in path.read_text().splitlines():
        if title := re.match(r"# \d+: \w+ v\d+: (.*)", line):
            label = title[1]
        elif line.startswith("> "):
            found.append(Exchange(label, bytes.fromhex(line[2:])))
        elif line.startswith("< "):
            found[-1].response = bytes.fromhex(line[2:])
    return found
