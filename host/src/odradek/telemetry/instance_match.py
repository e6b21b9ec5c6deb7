"""Which subscriptions apply to a client: regular expressions over its attributes.

The engine is RE2, whose time is linear in the text: clients choose the texts. All patterns for one selector
key are one set, so a client is matched by at most six scans, however many subscriptions there are.
"""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import re2

from odradek.bounded_regex import MAX_PROGRAM_BYTES, RegexError, compiled, re2_options
from odradek.plugin.context import RequestContext
from odradek.wire.uuid_text import uuid_text

log = logging.getLogger(__name__)

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
SET_MAX_BYTES: Final = 64 * 1024 * 1024


def stored_program(pattern: str) -> Any:
    """Compile a stored pattern, which may be larger than a new one can be.

    Raises:
        RegexError: RE2 does not accept it.
    """
    try:
        return compiled(pattern, MAX_PROGRAM_BYTES)
    except RegexError:
        return compiled(pattern)


def re2_problem(pattern: str) -> str | None:
    """The reason why RE2 refuses a pattern; None if it accepts it."""
    try:
        stored_program(pattern)
    except RegexError as reason:
        return str(reason)
    return None


def match_steps(patterns: Mapping[str, str]) -> int:
    """The steps of all patterns of a subscription; matching takes time in proportion to them."""
    programs = (stored_program(pattern) for pattern in patterns.values() if re2_problem(pattern) is None)
    return sum(program.programsize for program in programs)


def backtracking_fullmatch(pattern: str) -> Callable[[str], object] | None:
    """A substitute for java.util.regex, for patterns stored before RE2 was required; None if it fails."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(pattern).fullmatch
    except (re.error, OverflowError, RecursionError):
        return None


def fullmatch(pattern: str) -> Callable[[str], object]:
    """A function that says whether a text matches from end to end.

    Raises:
        ValueError: No engine takes the pattern.
    """
    if re2_problem(pattern) is None:
        whole: Callable[[str], object] = stored_program(pattern).fullmatch
        return whole
    older = backtracking_fullmatch(pattern)
    if older is None:
        raise ValueError(f"not a regular expression: {pattern}")
    log.warning("match pattern is no RE2 expression, matching by backtracking", extra={"pattern": pattern})
    return older


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
    """Patterns for one selector key, tried all at once."""

    __slots__ = ("patterns", "scan", "single")

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = patterns
        self.scan, left_out = compiled_set(patterns)
        self.single = {index: fullmatch(patterns[index]) for index in left_out}

    def matching(self, text: str) -> list[int]:
        """Indexes of the patterns that match all of ``text``."""
        if self.scan is not None:
            reported: list[int] = self.scan.Match(text) or []
            if 0 in reported:
                found = [index - 1 for index in reported if index]
                return found + self.matching_singly(text)
            self.abandon_scan()
        return self.matching_singly(text)

    def matching_singly(self, text: str) -> list[int]:
        """The matching patterns among those that are not in the set."""
        return [index for index, whole in self.single.items() if whole(text)]

    def abandon_scan(self) -> None:
        """Match each pattern separately from now on: together they are too large for one automaton."""
        self.scan = None
        self.single = {index: fullmatch(pattern) for index, pattern in enumerate(self.patterns)}


def compiled_set(patterns: Sequence[str]) -> tuple[re2.Set | None, list[int]]:
    """A set that reports pattern n as n + 1 and `ALWAYS` as 0, and the patterns that are not in it."""
    scan = re2.Set.FullMatchSet(re2_options(SET_MAX_BYTES))
    scan.Add(ALWAYS)
    left_out = []
    for index, pattern in enumerate(patterns):
        try:
            scan.Add(pattern)
        except re2.error:
            left_out.append(index)
            scan.Add(r"[^\x00-\x{10FFFF}]")  # keeps the numbering
    try:
        scan.Compile()
    except re2.error:
        return None, list(range(len(patterns)))
    return scan, left_out


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

        An attribute that is not known matches nothing, nor does a selector that does not exist.
        """
        satisfied: Counter[str] = Counter()
        for selector, patterns, owners in self.selectors:
            text = metadata.attribute(selector)
            if text is not None:
                satisfied.update(owners[index] for index in patterns.matching(text))
        return [name for name, needed in self.needed.items() if satisfied[name] == needed]
