"""The commands of the programs of clients, built if they are not in the user's cache."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from contrib.capture.kafka_node import NEWEST

ROOT: Final = Path(__file__).resolve().parents[2]
JAVA: Final = ROOT / "contrib" / "java"
GO: Final = ROOT / "contrib" / "go"
OPTIONS: Final = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
BUILD_S: Final = 900


def java_members() -> Sequence[str]:
    """The newest Java clients.

    Raises:
        subprocess.CalledProcessError: Java, Maven or the artifacts are not available.
    """
    command = (sys.executable, str(JAVA / "classpath.py"), "--kafka", NEWEST)
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_S, check=True)
    logging = f"-Dlog4j2.configurationFile={JAVA / 'log4j2.properties'}"
    return ("java", *OPTIONS, logging, "-cp", done.stdout.strip(), "odradek.Members")


def go_members() -> Sequence[str]:
    """franz-go.

    Raises:
        subprocess.CalledProcessError: Go or a module is not available.
    """
    cache = os.environ.get("ODRADEK_CLIENTS_CACHE") or Path.home() / ".cache" / "odradek" / "clients"
    program = Path(cache) / "franz-go" / "members"
    subprocess.run(("go", "build", "-o", str(program), "./members"), cwd=GO, timeout=BUILD_S, check=True)
    return (str(program),)
