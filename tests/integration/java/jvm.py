"""Runs a Java main class and waits for its end."""

from __future__ import annotations

import subprocess
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

    def run(self, main_class: str, *args: str, timeout_s: float = 60) -> Finished:
        """Run to the end.

        Raises:
            subprocess.TimeoutExpired: It was still running after ``timeout_s``; it is killed.
        """
        command = ["java", *OPTIONS, "-cp", self.classpath, main_class, *args]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
        return Finished(status=done.returncode, out=done.stdout, err=done.stderr)
