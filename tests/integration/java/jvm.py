"""Runs a Java main class and waits for its end."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LOGGING = Path(__file__).resolve().parents[3] / "contrib" / "java" / "log4j2.properties"
OPTIONS = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={LOGGING}"]
"""A small process that starts quickly: these tools live for a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a Java process left behind."""

    status: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Both streams, for tools that do not care which one they use."""
        return self.out + self.err


@dataclass(frozen=True, slots=True)
class Jvm:
    """A class path to start main classes from."""

    classpath: str

    def command(self, main_class: str, *args: str) -> list[str]:
        return ["java", *OPTIONS, "-cp", self.classpath, main_class, *args]

    def run(self, main_class: str, *args: str, stdin: str = "", timeout_s: float = 60) -> Finished:
        """Run to the end, with ``stdin`` to read.

        Raises:
            subprocess.TimeoutExpired: It was still running after ``timeout_s``; it is killed.
        """
        command = self.command(main_class, *args)
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        return Finished(status=done.returncode, out=done.stdout, err=done.stderr)

    @contextmanager
    def started(self, main_class: str, *args: str) -> Iterator[subprocess.Popen[str]]:
        """A program that runs meanwhile, its standard output a pipe. Killed at the end if it still runs."""
        command = self.command(main_class, *args)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()
