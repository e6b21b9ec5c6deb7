"""The outcome of a suite of another project is read as it is; what is not known fails."""

from __future__ import annotations

from contrib.compat.__main__ import SUITES
from contrib.compat.results import of_go, of_pytest, reason

GO = """=== RUN   TestA
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
PYTEST = """=========================== short test summary info ============================
PASSED tests/test_a.py::test_one
PASSED tests/test_a.py::test_two[3-x y]
SKIPPED [2] tests/test_a.py:7: needs GSSAPI
XFAIL tests/test_a.py::test_old - upstream
FAILED tests/test_a.py::TestB::test_three - AssertionError: assert 1 == 2
PASSED tests/test_b.py::test_four
ERROR tests/test_b.py::test_four - OSError: left
ERROR tests/test_c.py
==== 1 failed, 3 passed, 2 skipped, 1 xfailed, 2 errors in 1.00s ====
"""


def test_a_test_without_a_result_has_failed() -> None:
    found = of_go(GO)

    assert (found.passed, found.skipped, found.failed) == (1, 1, ["TestB", "TestD"])


def test_a_test_of_pytest_that_leaves_something_has_failed() -> None:
    found = of_pytest(PYTEST)

    assert (found.passed, found.skipped) == (2, 3)
    assert found.failed == [
        "tests/test_a.py::TestB::test_three",
        "tests/test_b.py::test_four",
        "tests/test_c.py",
    ]


def test_a_failure_that_is_not_known_is_told() -> None:
    assert of_go(GO).unknown({"TestB": "it wants another topic"}) == ["TestD"]
    assert of_pytest(PYTEST).unknown({"tests/test_[ac].py*": "it wants Docker"}) == [
        "tests/test_b.py::test_four"
    ]
    assert reason("TestB", {"TestA": "one", "Test?": "several"}) == "several"


def test_each_known_failure_has_a_reason() -> None:
    assert [
        name for suite in SUITES.values() for name, why in suite.get("known", {}).items() if not why
    ] == []
