"""Which source files their own test file covers alone: every line of every function, in two seconds of CPU.

``odradek/room/name.py`` has its own test file if there is ``tests/unit/room/test_name.py``. The files that
are covered are listed in ``covered_alone.txt``, which may only grow: a change of one of them has its answer
in seconds. ``python -m contrib.gate.alone`` compares; ``--write`` adds what has become covered.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "host/src/odradek"
LIST = Path(__file__).with_name("covered_alone.txt")
LIMIT_S = 2.0
"""CPU of one test file."""
REPORT = "ODRADEK_COVERED"
"""Environment variable: the file that the plugin writes."""


def own_tests() -> dict[str, str]:
    """Source files that have a test file of their own, and this file; both relative to the root."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        inside = path.relative_to(SOURCE)
        test = ROOT / "tests/unit" / inside.parent / f"test_{inside.name}"
        if test.is_file():
            found[str(path.relative_to(ROOT))] = str(test.relative_to(ROOT))
    return found


def listed() -> list[str]:
    return LIST.read_text(encoding="utf-8").split()


def functions(code: CodeType) -> Iterator[CodeType]:
    """The functions in a module's code, at any depth."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_flags & inspect.CO_OPTIMIZED:  # not the body of a class
                yield each
            yield from functions(each)


def lines_of(path: Path) -> set[int]:
    """The lines in functions; what a module does when it is imported is not the work of its own tests."""
    code = compile(path.read_text(encoding="utf-8"), str(path), "exec")
    return {
        line
        for each in functions(code)
        for _, _, line in each.co_lines()
        if line and line != each.co_firstlineno
    }


class Tracer:
    """Notes the lines of one source file that are executed in this thread."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.missing = lines_of(path)

    def enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        is_wanted = frame.f_code.co_filename == self.path and self.missing
        return self.step if is_wanted else None

    def step(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.missing.discard(frame.f_lineno)
        return self.step


class Plugin:
    """Traces the source file of each test module while its tests run."""

    def __init__(self) -> None:
        self.sources = {str(ROOT / test): source for source, test in own_tests().items()}
        self.tracers: dict[str, Tracer] = {}
        self.cpu_s: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        source = self.sources[str(item.path)]
        if source not in self.tracers:
            self.tracers[source] = Tracer(ROOT / source)
        begin_s = time.process_time()
        sys.settrace(self.tracers[source].enter)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            self.cpu_s[source] = self.cpu_s.get(source, 0.0) + time.process_time() - begin_s

    def pytest_sessionfinish(self) -> None:
        found = {
            source: sorted(tracer.missing)
            for source, tracer in self.tracers.items()
            if self.cpu_s[source] < LIMIT_S
        }
        Path(os.environ[REPORT]).write_text(json.dumps(found), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Plugin())


def missing(sources: Collection[str], report: Path) -> dict[str, list[int]]:
    """The lines of each file that its own tests do not execute; without files whose tests take too long.

    Args:
        sources: Source files with tests of their own.
        report: A file to be written.
    """
    tests = own_tests()
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "contrib.gate.alone"]
    subprocess.run(
        [*command, *(tests[source] for source in sources)],
        cwd=ROOT,
        env={**os.environ, REPORT: str(report)},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    found: dict[str, list[int]] = json.loads(report.read_text(encoding="utf-8"))
    return found


def covered(sources: Collection[str], report: Path) -> set[str]:
    """The files that are covered. What the tests of another file have cached may hide some of those that are
    listed, so each of these is tried again alone.
    """
    found = {source for source, lines in missing(sources, report).items() if not lines}
    again = set(listed()).intersection(sources) - found
    return found | {source for source in again if missing([source], report).get(source) == []}


def main(arguments: list[str]) -> int:
    with TemporaryDirectory() as folder:
        found = covered(own_tests(), Path(folder) / "report.json")
    lost, new = set(listed()) - found, found - set(listed())
    if "--write" in arguments:
        LIST.write_text("".join(f"{source}\n" for source in sorted(found | lost)), encoding="utf-8")
    print(
        *(f"lost: {source}" for source in sorted(lost)),
        *(f"new: {source}" for source in sorted(new)),
        sep="\n",
    )
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
