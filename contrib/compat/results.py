"""Reads the results of a suite's tests from its output, in one form for all languages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

GO: Final = re.compile(r"^--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)
PYTEST: Final = re.compile(
    r"^(PASSED|FAILED|ERROR|XFAIL|XPASS) ([^\s\[:]+(?:::[^\s\[]+(?:\[.*?\])?)?)(?= - |$)", re.MULTILINE
)
PASSED: Final = frozenset({"PASS", "PASSED", "XPASS"})
FAILED: Final = frozenset({"FAIL", "FAILED", "ERROR"})


class Outcome(NamedTuple):
    """The result of a suite."""

    passed: int
    skipped: int
    failed: list[str]
    """Names, sorted."""
    printed: str

    def unknown(self, known: Mapping[str, str]) -> list[str]:
        """The failures that nobody has explained; a name of ``known`` may have wildcards."""
        return [name for name in self.failed if reason(name, known) is None]


def reason(name: str, known: Mapping[str, str]) -> str | None:
    """Why a test fails; None if nobody has explained it."""
    return next(
        (why for pattern, why in known.items() if name == pattern or fnmatchcase(name, pattern)), None
    )


def of_go(printed: str) -> Outcome:
    """Read the output of ``go test -v``; a test without a result, such as after a panic, counts as failed."""
    begun = {name for name in re.findall(r"^=== RUN +(\S+)$", printed, re.MULTILINE) if "/" not in name}
    return counted({name: result for result, name in GO.findall(printed)}, begun, printed)


def of_pytest(printed: str) -> Outcome:
    """Read the summary of ``pytest -rA``."""
    results: dict[str, str] = {}
    for result, name in PYTEST.findall(printed):
        if results.get(name) not in FAILED:  # a test may pass before its fixtures fail
            results[name] = result
    skipped = sum(int(each) for each in re.findall(r"^SKIPPED \[(\d+)\]", printed, re.MULTILINE))
    found = counted(results, set(), printed)
    return found._replace(skipped=found.skipped + skipped)


def counted(results: Mapping[str, str], begun: set[str], printed: str) -> Outcome:
    """The outcome of results by test, and of tests that have begun."""
    failed = {name for name, result in results.items() if result in FAILED} | (begun - results.keys())
    counts = Counter("passed" if result in PASSED else "other" for result in results.values())
    others = sum(result not in PASSED | FAILED for result in results.values())
    return Outcome(counts["passed"], others, sorted(failed), printed)


READERS: Final[Mapping[str, Callable[[str], Outcome]]] = {"go": of_go, "python": of_pytest}
