"""Runs a suite of another project against a host of the test kit, and compares its failures with known ones.

    python -m contrib.compat franz-go                                     # from the repository's root
    python -m contrib.compat franz-go --bootstrap-server localhost:9092   # against another broker

It needs the suite's language, which fetches the suite from its registry. The exit status is 1 if a test fails
that ``suites.toml`` does not name.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from contrib.compat.results import READERS, Outcome, reason
from contrib.compat.sources import FETCHERS

import odradek.testing

SUITES: Final[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("suites.toml").read_text(encoding="utf-8")
)
DEFAULTS: Final = SUITES.pop("defaults")
TOOLS: Final = {"go": "go", "python": sys.executable}
"""The program of each language."""
SHOWN_LINES: Final = 60


def places(address: str, further: Mapping[str, str]) -> dict[str, str]:
    """The words that texts of a suite may have in braces."""
    host, _, port = address.rpartition(":")
    return {"address": address, "host": host, "port": port, **further}


@contextmanager
def broker(suite: Mapping[str, Any], given: str | None) -> Iterator[dict[str, str]]:
    """Run a host, unless there is a broker; yield the words of its addresses."""
    if given is not None:
        yield places(given, {})
        return
    settings, users = dict(suite["host"]), suite["users"]
    with odradek.testing.host(**settings) as host:
        for name, password in users.items():
            host.user(name, password)
        listeners = {f"{each.name.lower()}_port": str(each.port) for each in host.config.listeners}
        yield places(host.bootstrap, listeners)


def run(suite: Mapping[str, Any], words: Mapping[str, str], folder: Path, pattern: str | None) -> Outcome:
    """Run a suite against a broker."""
    words = {**words, "folder": str(folder)}
    try:
        replaced = {old: new.format_map(words) for old, new in suite["replaced"].items()}
        environment = {name: text.format_map(words) for name, text in suite["environment"].items()}
    except KeyError as error:
        sys.exit(f"the suite needs a host of ours: it asks for {error} of the broker")
    prepared = FETCHERS[suite["language"]](suite, folder, replaced)
    command = [*prepared.command, *([prepared.pattern, pattern] if pattern else [])]
    done = subprocess.run(
        command,
        cwd=prepared.place,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=suite["seconds"] + 60,
    )
    return READERS[suite["language"]](done.stdout + done.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description="Run a suite of another project against a host.")
    parser.add_argument("suite", choices=sorted(SUITES))
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT", help="another broker than a new host")
    parser.add_argument("--run", metavar="PATTERN", help="which tests, as of go test -run or pytest -k")
    parser.add_argument("--output", type=Path, metavar="FILE", help="keep what the suite prints")
    given = parser.parse_args()
    suite = DEFAULTS | SUITES[given.suite]
    tool = TOOLS[suite["language"]]
    if shutil.which(tool) is None:
        sys.exit(f"the suite needs {tool}: install it")
    with (
        tempfile.TemporaryDirectory(prefix="odradek-compat-") as name,
        broker(suite, given.bootstrap_server) as words,
    ):
        found = run(suite, words, Path(name), given.run)
    if given.output is not None:
        given.output.write_text(found.printed, encoding="utf-8")
    print(f"{given.suite} {suite['version']}: {found.passed} passed, {found.skipped} skipped")
    for test in found.failed:
        print(f"{test} failed: {reason(test, suite['known']) or 'not known'}")
    if unknown := found.unknown(suite["known"]):
        lines = [line for line in found.printed.splitlines() if any(test in line for test in unknown)]
        print("\n".join((lines or found.printed.splitlines())[-SHOWN_LINES:]), file=sys.stderr)
    sys.exit(bool(unknown) or not found.passed)


if __name__ == "__main__":
    main()
