from __future__ import annotations

import random
import re
import time

import pytest
import re2

from odradek.bounds.bounded_regex import re2_options
from odradek.telemetry import instance_match
from odradek.telemetry.instance_match import (
    ALWAYS,
    LONGEST_BYTES,
    ClientMetricsInstanceMetadata,
    InstanceMatch,
    PatternSet,
)

PATTERNS = [
    "",
    "a",
    "a.*",
    ".*a",
    "(a|ab)(c|bcd)",
    "[ab]+",
    r"\d+",
    "(?i)ABC",
    "a{2,3}",
    "é.",
    "a\nb",
    "^a$",
    "(?s).*",
]
TEXTS = ["", "a", "ab", "abc", "ABC", "aaa", "12", "éx", "a\nb", "\n", "abcd", "b" * 200, "a" * 200]


def test_set_agrees_with_matching_one_by_one() -> None:
    patterns = PatternSet(PATTERNS)

    found = {text: sorted(patterns.matching(text)) for text in TEXTS}

    assert found == {
        text: [
            index
            for index, pattern in enumerate(PATTERNS)
            if re2.compile(pattern, re2_options()).fullmatch(text)
        ]
        for text in TEXTS
    }


def test_no_match_is_an_empty_list() -> None:
    assert PatternSet(["a", "b"]).matching("zz") == []


def test_set_that_is_too_large_to_compile_is_matched_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instance_match, "SET_BYTES", 65_536)
    whole = PatternSet([f"(a|b){{1,50}}c{index}x{{90}}" for index in range(10)])

    found = whole.matching("ab" * 5 + "c7" + "x" * 90)

    assert (whole.scan, found) == (None, [7])


def test_failing_scan_is_abandoned() -> None:
    patterns = PatternSet(["a.*", "b"])
    patterns.scan = failing_scan()

    found = patterns.matching("abc")

    assert (found, patterns.scan) == ([0], None)


def failing_scan() -> re2.Set:
    """A set that reports no match at all, as RE2 does when its automaton runs out of memory."""
    scan = re2.Set.FullMatchSet(re2_options())
    scan.Add("never")
    scan.Compile()
    return scan


@pytest.mark.parametrize(("text", "found"), [("é" * 250, ["all"]), ("é" * 250 + "x", []), ("x" * 30_000, [])])
def test_a_text_that_is_too_long_matches_nothing(text: str, found: list[str]) -> None:
    match = InstanceMatch({"all": {"client_id": ".*"}})

    assert LONGEST_BYTES == 500
    assert match.matching(ClientMetricsInstanceMetadata(bytes(16), text, None, None, None, None)) == found


def test_sentinel_matches_every_text() -> None:
    whole = re2.compile(ALWAYS, re2_options()).fullmatch

    assert all(whole(text) for text in [*TEXTS, "\x00", "\U0010ffff"])


def test_catastrophic_pattern_is_harmless() -> None:
    patterns = PatternSet(["(a|aa)+b", "(a*)*b"])
    started = time.process_time()

    found = patterns.matching("a" * 5000)

    assert found == []
    assert time.process_time() - started < 1


def test_random_alternatives_agree_with_the_standard_library() -> None:
    chance = random.Random(5)
    patterns = ["|".join("".join(chance.choices("ab.", k=3)) for _ in range(3)) for _ in range(100)]
    texts = ["".join(chance.choices("abc", k=3)) for _ in range(50)]
    whole = PatternSet(patterns)

    found = [sorted(whole.matching(text)) for text in texts]

    assert found == [
        [index for index, pattern in enumerate(patterns) if re.fullmatch(pattern, text)] for text in texts
    ]
