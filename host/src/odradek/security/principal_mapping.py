"""``ssl.principal.mapping.rules``: the user name of a client, from the subject of its certificate.

After SslPrincipalMapper (Kafka 4.3). Rules are tried in order, and the first whose pattern matches the whole
subject gives the name. Patterns are Python's regular expressions, which differ from Java's in rare forms
(``\\p{...}``, ``\\Q...\\E``); one that Python does not know is refused at the start.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

DEFAULT: Final = "DEFAULT"
RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
SPLITTER: Final = rf"\s*({RULE})\s*(,\s*|$)"
REFERENCE: Final = r"\\(?P<literal>.)|\$(?P<digits>\d+)|(?P<bad>[\\$])|(?P<text>[^\\$]+)"
CASES: Final[dict[str, Callable[[str], str]]] = {"": str, "L": str.lower, "U": str.upper}


class NoMatchingRule(Exception):
    """No rule applies to the subject of a certificate."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule."""

    text: str
    pattern: re.Pattern[str] | None = None
    """None for ``DEFAULT``, which keeps the subject."""
    replacement: tuple[str | int, ...] = ()
    """Texts, and the numbers of groups."""
    case: Callable[[str], str] = str

    def apply(self, subject: str) -> str | None:
        """Return the name; None if the rule does not match."""
        if self.pattern is None:
            return subject
        if self.pattern.fullmatch(subject) is None:
            return None
        return self.case(self.pattern.sub(self.expanded, subject))

    def expanded(self, match: re.Match[str]) -> str:
        """Return the replacement with the groups of a match."""
        return "".join(
            part if isinstance(part, str) else (match.group(part) or "") for part in self.replacement
        )


@dataclass(frozen=True, slots=True)
class PrincipalMapping:
    """All rules of a listener."""

    rules: tuple[Rule, ...]

    def __str__(self) -> str:
        return ", ".join(rule.text for rule in self.rules)

    def name(self, subject: str) -> str:
        """Return the user name of a certificate's subject.

        Raises:
            NoMatchingRule: No rule applies.
        """
        for rule in self.rules:
            name = rule.apply(subject)
            if name is not None:
                return name
        raise NoMatchingRule(f"No rules apply to {subject}, rules [{self}]")


UNMAPPED: Final = PrincipalMapping((Rule(DEFAULT),))
"""The subject is the name."""


def parse_rules(text: str) -> PrincipalMapping:
    """Parse rules that are separated by commas.

    Raises:
        ValueError: A rule is invalid.
    """
    found = (parse_rule(match[1]) for match in re.finditer(SPLITTER, text.strip()))
    return PrincipalMapping(tuple(rule for rule in found if rule is not None))


def parse_rule(text: str) -> Rule | None:
    """Parse one rule; None for an empty one."""
    match = re.match(RULE, text)
    if match is None or match.end() != len(text):
        left = text if match is None else text[match.end() :]
        raise ValueError(f"Invalid rule: `{text}`, unmatched substring: `{left}`")
    if match[1]:
        return Rule(text)
    if match[2] is None:
        return None
    try:
        pattern = re.compile(match[2], re.ASCII)
        replacement = parse_replacement(match[3], pattern.groups)
    except (re.error, ValueError) as error:
        raise ValueError(f"Invalid rule: `{text}`: {error}") from None
    return Rule(text, pattern, replacement, CASES[match[4]])


def parse_replacement(text: str, groups: int) -> tuple[str | int, ...]:
    """Parse the replacement of a rule.

    ``$12`` is group 1 and a ``2`` if there are fewer than 12 groups. A reference to a group that does not
    exist is text, unless the pattern has no groups at all: Java fails then.

    Raises:
        ValueError: A group does not exist, or a ``$`` or a backslash stands alone.
    """
    parts: list[str | int] = []
    for match in re.finditer(REFERENCE, text, re.DOTALL):
        if match["bad"]:
            raise ValueError(f"expected a group or a character after {match['bad']} in the replacement")
        if match["digits"] is None:
            parts.append(match["literal"] or match["text"])
            continue
        number, rest = group_number(match["digits"], groups)
        if number <= groups:
            parts += [number, rest]
        elif groups:
            parts.append(match[0])
        else:
            raise ValueError(f"the pattern has no group {number}")
    return tuple(parts)


def group_number(digits: str, groups: int) -> tuple[int, str]:
    """Divide digits into the longest number of a group that exists, at least one digit, and the rest."""
    end = 1
    while end < len(digits) and 0 < int(digits[: end + 1]) <= groups:
        end += 1
    return int(digits[:end]), digits[end:]
