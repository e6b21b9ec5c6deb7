"""README's command and `.ci/run` together run every test."""

from __future__ import annotations

import tomllib

from support.selection import FOR_CI, MARKED, MARKED_SOMEWHERE, MARKED_WHOLE, NIGHTLY, ROOT, is_in


def test_the_continuous_integration_runs_every_marker_that_pytest_alone_leaves_out() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")

    assert f'marked="{MARKED}"' in script
    assert 'pytest tests plugins -m "$marked" ' in script


def test_every_night_has_its_files() -> None:
    assert [path for path in NIGHTLY if not path.is_file()] == []


def test_no_file_is_left_out_by_both() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    alone = [ROOT / name for name in project["tool"]["pytest"]["ini_options"]["testpaths"]]
    files = [path for name in ("tests", "plugins") for path in (ROOT / name).rglob("test_*.py")]

    left = [path for path in files if not is_in([*alone, *FOR_CI], path)]

    assert [path for path in left if "\npytestmark = pytest.mark.ci\n" not in path.read_text()] == []


def test_a_module_is_not_imported_if_all_its_tests_are_marked() -> None:
    marked = [
        "pytest.mark.ci",
        "[pytest.mark.timeout(120), pytest.mark.ci]",
        "[pytest.mark.java, pytest.mark.slow]",
    ]
    other = ["pytest.mark.timeout(120)", 'pytest.mark.parametrize("ci", [pytest.mark])']

    assert [each for each in marked if not MARKED_WHOLE.search(f"import x\npytestmark = {each}\n")] == []
    assert [each for each in other if MARKED_WHOLE.search(f"import x\npytestmark = {each}\n")] == []
    assert MARKED_WHOLE.search("@pytest.mark.ci\ndef test_a() -> None: ...") is None
    assert MARKED_SOMEWHERE.search("@pytest.mark.ci\ndef test_a() -> None: ...")
    assert MARKED_SOMEWHERE.search("@pytest.mark.timeout(9)\ndef test_a() -> None: ...") is None
