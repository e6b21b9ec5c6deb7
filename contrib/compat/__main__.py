"""Runs a suite of another project against a host, and compares what fails with what is known to.

    python -m contrib.compat franz-go                                     # from the repository's root
    python -m contrib.compat franz-go --bootstrap-server localhost:9092   # against another broker

It needs Go, which fetches the suite from its registry. The exit status is 1 if a test fails that
``suites.toml`` does not name.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

SUITES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("suites.toml").read_text(encoding="utf-8"))
RESULT = re.compile(r"^--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)
READY = re.compile(r"listeners=PLAINTEXT://([^\s,]+)")


class Outcome(NamedTuple):
    """The result of a suite."""

    passed: int
    skipped: int
    failed: list[str]
    """Names, sorted."""
    printed: str

    def unknown(self, known: dict[str, str]) -> list[str]:
        """The failures that nobody has explained."""
        return [name for name in self.failed if name not in known]


def outcome(printed: str) -> Outcome:
    """Read the output of ``go test -v``; a test without a result, such as after a panic, counts as failed."""
    results = {name: result for result, name in RESULT.findall(printed)}
    begun = {name for name in re.findall(r"^=== RUN +(\S+)$", printed, re.MULTILINE) if "/" not in name}
    failed = {name for name, result in results.items() if result == "FAIL"} | (begun - results.keys())
    counts = Counter(results.values())
    return Outcome(counts["PASS"], counts["SKIP"], sorted(failed), printed)


def compiled(suite: dict[str, Any], folder: Path) -> tuple[Path, Path]:
    """Fetch and compile a suite; return the program, and the folder in which it runs.

    Raises:
        subprocess.CalledProcessError: It cannot be fetched or compiled.
    """
    command = ["go", "mod", "download", "-json", f"{suite['module']}@{suite['version']}"]
    (folder / "go.mod").write_text("module compat\n")
    found = json.loads(subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout)
    source = shutil.copytree(found["Dir"], folder / "source")
    for path in [source, *source.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)  # the registry's copy can only be read
    program = folder / "suite"
    subprocess.run(["go", "test", "-c", "-o", program, suite["package"]], cwd=source, check=True)
    return program, source / suite["package"]


@contextmanager
def host(folder: Path) -> Iterator[str]:
    """Run a host; yield its address."""
    data, listener = f"data.dir={folder / 'data'}", "listeners=PLAINTEXT://127.0.0.1:0"
    command = [sys.executable, "-m", "odradek", "serve", "--set", data, "--set", listener]
    command += ["--log-level", "warning"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready = READY.search(process.stdout.readline())
        try:
            if ready is None:
                raise RuntimeError("the host does not start; the reason is above")
            yield ready[1]
        finally:
            process.terminate()


def run(suite: dict[str, Any], address: str, folder: Path, pattern: str) -> Outcome:
    """Run a suite against a broker."""
    program, place = compiled(suite, folder)
    environ = os.environ | suite["environment"] | {"KGO_SEEDS": address}
    limit_s = suite["seconds"]
    command = [str(program), "-test.v", "-test.run", pattern, "-test.timeout", f"{limit_s}s"]
    done = subprocess.run(
        command, cwd=place, env=environ, capture_output=True, text=True, check=False, timeout=limit_s + 60
    )
    return outcome(done.stdout + done.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description="Run a suite of another project against a host.")
    parser.add_argument("suite", choices=sorted(SUITES))
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT", help="another broker than a new host")
    parser.add_argument("--run", default=".", metavar="PATTERN", help="which tests, as of go test -run")
    given = parser.parse_args()
    suite = SUITES[given.suite]
    if shutil.which("go") is None:
        sys.exit("the suite is a Go program: install Go")
    with tempfile.TemporaryDirectory(prefix="odradek-compat-") as name:
        folder = Path(name)
        if given.bootstrap_server:
            found = run(suite, given.bootstrap_server, folder, given.run)
        else:
            with host(folder) as address:
                found = run(suite, address, folder, given.run)
    print(f"{given.suite} {suite['version']}: {found.passed} passed, {found.skipped} skipped")
    for test in found.failed:
        print(f"{test} failed: {suite['known'].get(test, 'not known')}")
    if unknown := found.unknown(suite["known"]):
        lines = [line for line in found.printed.splitlines() if any(test in line for test in unknown)]
        print("\n".join(found.printed.splitlines()[-40:] if not lines else lines[-40:]), file=sys.stderr)
    sys.exit(bool(unknown) or not found.passed)


if __name__ == "__main__":
    main()
