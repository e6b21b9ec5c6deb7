"""The outcome of a suite of another project is read as it is; what is not known fails."""

from __future__ import annotations

from contrib.compat.__main__ import SUITES, outcome

PRINTED = """=== RUN   TestA
--- PASS: TestA (0.00s)
=== RUN   TestB
=== RUN   TestB/sticky
    --- FAIL: TestB/sticky (1.00s)
--- FAIL: TestB (1.00s)
=== RUN   TestC
--- SKIP: TestC (0.00s)
=== RUN   TestD
panic: test timed out
"""


def test_a_test_without_a_result_has_failed() -> None:
    found = outcome(PRINTED)

    assert (found.passed, found.skipped, found.failed) == (1, 1, ["TestB", "TestD"])


def test_a_failure_that_is_not_known_is_told() -> None:
    assert outcome(PRINTED).unknown({"TestB": "it wants another topic"}) == ["TestD"]


def test_each_known_failure_has_a_reason() -> None:
    assert [name for suite in SUITES.values() for name, why in suite["known"].items() if not why] == []
