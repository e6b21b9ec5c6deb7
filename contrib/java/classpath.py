#!/usr/bin/env python3
"""Print a Java class path: Kafka's artifacts from Maven and the compiled classes of ``src/``.

    python contrib/java/classpath.py        # <cache>/odradek/java/classes:<repository>/...

Build output goes to ``$ODRADEK_JAVA_CACHE`` (default ``~/.cache/odradek/java``) and is rebuilt when
``pom.xml`` or a source has changed. If Java, Maven or the artifacts are not available, the exit status is 3,
with one line on stderr.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
UNAVAILABLE = 3
MAVEN_TIMEOUT_S = 600
JAVAC_TIMEOUT_S = 120


class UnavailableError(Exception):
    """Java, Maven or the artifacts are not available; the message says which."""


def cache_dir() -> Path:
    """The folder for build output, outside the source tree."""
    named = os.environ.get("ODRADEK_JAVA_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "odradek" / "java"


def sources() -> list[Path]:
    return sorted((HERE / "src").rglob("*.java"))


def fingerprint() -> str:
    """A digest that changes with ``pom.xml`` and every source."""
    digest = hashlib.sha256()
    for path in (HERE / "pom.xml", *sources()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def run(command: list[str], timeout_s: int) -> None:
    """Run a build tool quietly.

    Raises:
        UnavailableError: The tool is not installed, failed or took too long.
    """
    if shutil.which(command[0]) is None:
        raise UnavailableError(f"{command[0]} is not installed")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{command[0]} did not end within {timeout_s} s") from None
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines()
        raise UnavailableError(f"{command[0]} failed: {said[0] if said else done.returncode}")


def artefacts(listing: Path) -> str:
    """The class path of the dependencies in ``pom.xml``; Maven downloads what is missing."""
    goal = ["dependency:build-classpath", f"-Dmdep.outputFile={listing}", "-Dmdep.includeScope=runtime"]
    run(["mvn", "-B", "-q", "-f", str(HERE / "pom.xml"), *goal], MAVEN_TIMEOUT_S)
    return listing.read_text().strip()


def compile_sources(jars: str, classes: Path) -> None:
    files = [str(path) for path in sources()]
    run(
        [
            "javac",
            "-Xlint:all,-processing,-classfile",
            "--release",
            "17",
            "-cp",
            jars,
            "-d",
            str(classes),
            *files,
        ],
        JAVAC_TIMEOUT_S,
    )


def build(folder: Path) -> str:
    """Build into ``folder`` and return the class path."""
    folder.mkdir(parents=True, exist_ok=True)
    jars = artefacts(folder / "artefacts.txt")
    compile_sources(jars, folder / "classes")
    classpath = f"{folder / 'classes'}{os.pathsep}{jars}"
    partial = folder / "classpath.partial"
    partial.write_text(classpath)
    partial.replace(folder / "classpath.txt")
    return classpath


def is_whole(classpath: str) -> bool:
    """Whether all files still exist: the local Maven repository may have been emptied since the build."""
    return all(Path(entry).exists() for entry in classpath.split(os.pathsep))


def classpath() -> str:
    """Return the class path, and build it if needed. Several processes may call this at once.

    Raises:
        UnavailableError: Java, Maven or the artifacts are not available.
    """
    folder = cache_dir() / fingerprint()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ready = folder / "classpath.txt"
        if ready.exists() and is_whole(known := ready.read_text()):
            return known
        return build(folder)


def main() -> int:
    try:
        if shutil.which("java") is None:
            raise UnavailableError("java is not installed")
        print(classpath())
    except UnavailableError as reason:
        print(reason, file=sys.stderr)
        return UNAVAILABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
