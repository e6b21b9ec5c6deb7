"""Which subscriptions apply to a client: regular expressions over its attributes.

The engine is RE2, whose time is linear in the text: clients choose the texts. All patterns for one selector
key are one set, so a client is matched by at most six scans, however many subscriptions there are.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import re2

from odradek.bounds.bounded_regex import compiled, re2_options
from odradek.plugin.context import RequestContext
from odradek.wire.uuid_text import uuid_text

SELECTORS: Final = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
"""The selector keys of ``match`` (ClientMetricsConfigs.java)."""

ALWAYS: Final = "(?s:.*)"
"""Matches every text. A set that does not report it ran out of memory, which RE2 reports no other way."""
SET_BYTES: Final = 8 << 20
"""Memory of a set while it matches."""
LONGEST_BYTES: Final = 500
"""Of a text, which a client chooses. Each byte takes up to 50 µs, with as many patterns as there may be."""


@dataclass(slots=True, eq=False)
class ClientMetricsInstanceMetadata:
    """The attributes of a client when its instance was made; after the Kafka class of that name."""

    client_instance_id: bytes
    client_id: str | None
    client_software_name: str | None
    client_software_version: str | None
    client_source_address: str | None
    client_source_port: int | None

    def attribute(self, selector: str) -> str | None:
        """The text that patterns for ``selector`` see; None if there is none."""
        if selector == "client_instance_id":
            return uuid_text(self.client_instance_id)
        value: str | int | None = getattr(self, selector)
        return None if value is None else str(value)


def metadata_of(client_instance_id: bytes, context: RequestContext) -> ClientMetricsInstanceMetadata:
    """The attributes of the client that sent a request."""
    connection = context.connection
    return ClientMetricsInstanceMetadata(
        client_instance_id,
        context.client_id,
        sys.intern(connection.client_software_name),
        sys.intern(connection.client_software_version),
        connection.client_address,
        connection.client_port,
    )


class PatternSet:
    """Patterns for one selector key, tried all at once.

    Args:
        patterns: Expressions that RE2 accepts.

    Raises:
        RegexError: It does not accept one.
    """

    __slots__ = ("patterns", "scan", "single")

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = patterns
        self.single: list[Any] = []
        """The compiled patterns, where they are too large for one automaton."""
        self.scan = compiled_set(patterns)
        if self.scan is None:
            self.abandon_scan()

    def matching(self, text: str) -> list[int]:
        """Indexes of the patterns that match all of ``text``."""
        if self.scan is not None:
            reported: list[int] = self.scan.Match(text) or []
            if 0 in reported:
                return [index - 1 for index in reported if index]
            self.abandon_scan()
        return [index for index, program in enumerate(self.single) if program.fullmatch(text)]

    def abandon_scan(self) -> None:
        """Match each pattern separately from now on: together they are too large for one automaton."""
        self.scan = None
        self.single = [compiled(pattern, SET_BYTES) for pattern in self.patterns]


def compiled_set(patterns: Sequence[str]) -> re2.Set | None:
    """A set that reports pattern n as n + 1 and `ALWAYS` as 0; None if it would be too large."""
    scan = re2.Set.FullMatchSet(re2_options(SET_BYTES))
    scan.Add(ALWAYS)
    try:
        for pattern in patterns:
            scan.Add(pattern)
        scan.Compile()
    except re2.error:
        return None
    return scan


@dataclass(slots=True)
class SelectorPatterns:
    """The patterns of all subscriptions for one selector key, with the names of their subscriptions."""

    patterns: list[str] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)


class InstanceMatch:
    """All subscriptions' patterns, compiled."""

    __slots__ = ("needed", "selectors")

    def __init__(self, patterns: Mapping[str, Mapping[str, str]]) -> None:
        """Compile the patterns of each subscription, by name; a subscription without patterns matches all."""
        self.needed = {name: len(own) for name, own in patterns.items()}
        rows = {selector: SelectorPatterns() for selector in SELECTORS}
        for name, own in patterns.items():
            for selector, pattern in own.items():
                if selector in rows:
                    rows[selector].patterns.append(pattern)
                    rows[selector].owners.append(name)
        self.selectors = [
            (selector, PatternSet(row.patterns), row.owners) for selector, row in rows.items() if row.patterns
        ]

    def matching(self, metadata: ClientMetricsInstanceMetadata) -> list[str]:
        """Names of the subscriptions all of whose patterns match, in the order in which they were given.

        An attribute that is not known or too long matches nothing, nor does a selector that does not exist.
        """
        satisfied: Counter[str] = Counter()
        for selector, patterns, owners in self.selectors:
            text = metadata.attribute(selector)
            if text is not None and len(text.encode()) <= LONGEST_BYTES:
                satisfied.update(owners[index] for index in patterns.matching(text))
        return [name for name, needed in self.needed.items() if satisfied[name] == needed]
