"""A data directory of one release, opened by another."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from contrib.release.environments import Environment

RECORDS: Final = 1_000
READY: Final = "odradek ready listeners=PLAINTEXT://"


@contextmanager
def serving(environment: Environment, data: Path) -> Iterator[str]:
    """Run a host on a data directory; yield its address.

    Raises:
        RuntimeError: It does not start.
    """
    listener = "listeners=PLAINTEXT://127.0.0.1:0"
    command = [str(environment.bin / "odradek"), "serve", "--set", f"data.dir={data}", "--set", listener]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith(READY):
            raise RuntimeError(process.communicate()[1])
        try:
            yield line.removeprefix(READY).split()[0].partition(",")[0]
        finally:
            process.terminate()
            process.communicate(timeout=60)


def fill(environment: Environment, data: Path) -> None:
    """Write a topic, its records and a subscription with one release."""
    with serving(environment, data) as address:
        there = ("--bootstrap-server", address)
        environment.run("odradek", "topics", *there, "--create", "--topic", "orders", "--partitions", "3")
        environment.run("odradek", "client-metrics", *there, "--alter", "--name", "all", "--metrics", "*")
        lines = "".join(f"{number}\n" for number in range(RECORDS))
        environment.run("odradek", "produce", *there, "--topic", "orders", input=lines)


def check(environment: Environment, data: Path) -> None:
    """Read with another release what `fill` wrote.

    Raises:
        ValueError: Something is missing.
    """
    with serving(environment, data) as address:
        there = ("--bootstrap-server", address)
        read = ("--topic", "orders", "--from-beginning", "--max-messages", str(RECORDS))
        found = environment.run("odradek", "consume", *there, *read).split()
        if sorted(map(int, found)) != list(range(RECORDS)):
            raise ValueError(f"{len(found)} records of {RECORDS} are there after the upgrade")
        if "all" not in environment.run("odradek", "client-metrics", *there, "--list").split():
            raise ValueError("the subscription is gone after the upgrade")


def check_refused(environment: Environment, data: Path) -> str:
    """Start on a data directory of a newer format; return the words that refuse it.

    Raises:
        ValueError: It starts.
    """
    with closing(sqlite3.connect(data / "metadata.db")) as database:
        (version,) = database.execute("pragma user_version").fetchone()
        database.execute(f"pragma user_version = {version + 1}")
    try:
        with serving(environment, data):
            raise ValueError("a data directory of a newer format is opened")
    except RuntimeError as error:
        return str(error).strip()
