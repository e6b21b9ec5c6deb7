"""Runs Java main classes, in a shared JVM or in one of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration.java.main_server import Finished, MainServer

JAVA = Path(__file__).resolve().parents[3] / "contrib" / "java"
LOGGING = JAVA / "log4j2.properties"
BUILD_TIMEOUT_S = 900
"""On the first run Maven may have to download a hundred artifacts."""
OPTIONS = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={LOGGING}"]
"""A small JVM that starts quickly: these tools run for a second."""
SERVER = "odradek.MainServer"


def built_classpath(*args: str) -> str:
    """The class path that ``contrib/java/classpath.py`` prints; skips the test if it cannot be built."""
    command = [sys.executable, str(JAVA / "classpath.py"), *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    if done.returncode == 3:
        pytest.skip(f"no Java class path: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class Jvm:
    """A class path to start main classes from."""

    classpath: str
    server: MainServer | None = None
    """The shared JVM for `run`. Without it, each run has a JVM of its own."""
    options: tuple[str, ...] = ()
    """Further options of JVMs of their own."""

    @property
    def apart(self) -> Jvm:
        """The same class path, and a JVM for each run."""
        return Jvm(self.classpath, None, self.options)

    def resolving(self, hosts: Path) -> Jvm:
        """The same class path, and a JVM for each run that knows only the names in a hosts file."""
        return Jvm(self.classpath, None, (f"-Djdk.net.hosts.file={hosts}",))

    def command(self, main_class: str, *args: str) -> list[str]:
        """The command line of a JVM of its own."""
        return ["java", *OPTIONS, *self.options, "-cp", self.classpath, main_class, *args]

    def run(self, main_class: str, *args: str, stdin: str = "", timeout_s: float = 60) -> Finished:
        """Run to the end, with ``stdin`` as standard input.

        Raises:
            subprocess.TimeoutExpired: It was still running after ``timeout_s``. A JVM of its own is killed.
        """
        if self.server is not None:
            return self.server.run(main_class, *args, stdin=stdin, timeout_s=timeout_s)
        command = self.command(main_class, *args)
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        return Finished(status=done.returncode, out=done.stdout, err=done.stderr)

    @contextmanager
    def started(
        self, main_class: str, *args: str, stdin: int | None = None
    ) -> Iterator[subprocess.Popen[str]]:
        """Start a JVM of its own, its standard output a pipe. It is killed at the end if it still runs."""
        command = self.command(main_class, *args)
        with subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()


@dataclass(frozen=True, slots=True)
class Clients:
    """Kafka's Java clients of one version."""

    version: str
    jvm: Jvm
