#!/usr/bin/env python3
"""Print a Java class path: Kafka's artifacts from Maven and the compiled classes of ``src/``.

    python contrib/java/classpath.py                    # <cache>/odradek/java/classes:<repository>/...
    python contrib/java/classpath.py --kafka 4.4.0      # of another Kafka than that in pom.xml
    python contrib/java/classpath.py --broker 3.6.2     # a broker of an old Kafka, without tools and src/
    python contrib/java/classpath.py --relay            # the jar of contrib/relay alone

Build output goes to ``$ODRADEK_JAVA_CACHE`` (default ``~/.cache/odradek/java``) and is rebuilt when
``pom.xml`` or a source has changed. If Java, Maven or the artifacts are not available, the exit status is 3,
with one line on stderr. If a source does not compile, it is 1, with the compiler's output: tests must not be
skipped then.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
POM = HERE / "pom.xml"
BROKER_POM = HERE / "broker.xml"
RELAY = HERE.parent / "relay"
UNAVAILABLE = 3
MAVEN_TIMEOUT_S = 600
JAVAC_TIMEOUT_S = 120


class UnavailableError(Exception):
    """Java, Maven or the artifacts are not available; the message says which."""


class CompileError(Exception):
    """A source does not compile; the message is the compiler's output."""


def cache_dir() -> Path:
    """The folder for build output, outside the source tree."""
    named = os.environ.get("ODRADEK_JAVA_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "odradek" / "java"


def sources() -> list[Path]:
    return sorted((HERE / "src").rglob("*.java"))


def fingerprint(kafka: str, *files: Path) -> str:
    """A digest that changes with the files and the version of Kafka."""
    digest = hashlib.sha256(kafka.encode())
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def run(command: list[str], timeout_s: int) -> None:
    """Run a build tool quietly.

    Raises:
        UnavailableError: The tool is not installed, failed or took too long.
        CompileError: A source does not compile.
    """
    if shutil.which(command[0]) is None:
        raise UnavailableError(f"{command[0]} is not installed")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{command[0]} did not end within {timeout_s} s") from None
    if done.returncode:
        said = (done.stdout + done.stderr).strip()
        if ".java:" in said:  # javac and Maven name the file and the line
            raise CompileError(said)
        raise UnavailableError(f"{command[0]} failed: {said.splitlines()[0] if said else done.returncode}")


def artefacts(listing: Path, kafka: str, pom: Path = POM) -> str:
    """The class path of the dependencies in a POM; Maven downloads what is missing."""
    goal = ["dependency:build-classpath", f"-Dmdep.outputFile={listing}", "-Dmdep.includeScope=runtime"]
    version = [f"-Dkafka.version={kafka}"] if kafka else []
    run(["mvn", "-B", "-q", "-f", str(pom), *goal, *version], MAVEN_TIMEOUT_S)
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


def build(folder: Path, kafka: str) -> str:
    """Build into ``folder`` and return the class path."""
    jars = artefacts(folder / "artefacts.txt", kafka)
    compile_sources(jars, folder / "classes")
    return f"{folder / 'classes'}{os.pathsep}{jars}"


def build_broker(folder: Path, kafka: str) -> str:
    """Return the class path of a broker alone."""
    return artefacts(folder / "artefacts.txt", kafka, BROKER_POM)


def relay_files() -> list[Path]:
    return [RELAY / "pom.xml", *sorted(RELAY.rglob("*.java"))]


def build_relay(folder: Path) -> str:
    """Build the jar of contrib/relay with Maven and return its path."""
    target = folder / "target"
    run(
        ["mvn", "-B", "-q", "-f", str(RELAY / "pom.xml"), f"-Drelay.build={target}", "package"],
        MAVEN_TIMEOUT_S,
    )
    (jar,) = target.glob("odradek-relay-*.jar")
    return str(jar)


def is_whole(classpath: str) -> bool:
    """Whether all files still exist: the local Maven repository may have been emptied since the build."""
    return all(Path(entry).exists() for entry in classpath.split(os.pathsep))


def classpath(kafka: str = "") -> str:
    """Return the class path of Kafka and of ``src/``, and build it if needed.

    Args:
        kafka: The version of Kafka's server and client; empty for that of ``pom.xml``.

    Raises:
        UnavailableError: Java, Maven or the artifacts are not available.
    """
    return built(fingerprint(kafka, POM, *sources()), lambda folder: build(folder, kafka))


def broker_classpath(kafka: str) -> str:
    """Return the class path of a broker alone, as `classpath` does."""
    return built(fingerprint(kafka, BROKER_POM), lambda folder: build_broker(folder, kafka))


def relay_jar() -> str:
    """Return the path of the relay's jar, as `classpath` does."""
    return built(fingerprint("", *relay_files()), build_relay)


def built(name: str, build_into: Callable[[Path], str]) -> str:
    """Return the class path that a build left in a folder of the cache, and build it if needed.

    Several processes may call this at once.
    """
    folder = cache_dir() / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ready = folder / "classpath.txt"
        if ready.exists() and is_whole(known := ready.read_text()):
            return known
        found = build_into(folder)
        partial = folder / "classpath.partial"
        partial.write_text(found)
        partial.replace(ready)
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Print a Java class path of Kafka and of contrib/java.")
    parser.add_argument("--kafka", default="", metavar="VERSION", help="default: that of pom.xml")
    parser.add_argument("--broker", default="", metavar="VERSION", help="a broker alone, of this version")
    parser.add_argument("--relay", action="store_true", help="the jar of contrib/relay alone")
    options = parser.parse_args()
    try:
        if shutil.which("java") is None:
            raise UnavailableError("java is not installed")
        if options.relay:
            print(relay_jar())
        elif options.broker:
            print(broker_classpath(options.broker))
        else:
            print(classpath(options.kafka))
    except UnavailableError as reason:
        print(reason, file=sys.stderr)
        return UNAVAILABLE
    except CompileError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
