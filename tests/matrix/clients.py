"""The commands of the programs of clients, built if they are not in the user's cache."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from contrib.capture.kafka_node import LOGGING, NEWEST, QUICK_START, java_classpath

GO: Final = Path(__file__).resolve().parents[2] / "contrib" / "go"
OPTIONS: Final = ("-Xmx512m", *QUICK_START)
STREAMS: Final = "4.3.1"
"""The newest version of Kafka Streams on Maven Central."""
BUILD_S: Final = 900


def commands() -> dict[str, Sequence[str]]:
    """The command of each program: ``java``, ``streams``, ``go``, ``python``.

    Raises:
        subprocess.CalledProcessError: Java, Maven, Go or a module is not available.
    """
    return {
        "java": java_members(NEWEST),
        "streams": java_members(STREAMS),
        "go": go_members(),
        "python": (sys.executable, "-m", "matrix.members"),
    }


def java_members(version: str) -> Sequence[str]:
    return ("java", *OPTIONS, *LOGGING, "-cp", java_classpath(version), "odradek.Members")


def go_members() -> Sequence[str]:
    cache = os.environ.get("ODRADEK_CLIENTS_CACHE") or Path.home() / ".cache" / "odradek" / "clients"
    program = Path(cache) / "franz-go" / "members"
    subprocess.run(("go", "build", "-o", str(program), "./members"), cwd=GO, timeout=BUILD_S, check=True)
    return (str(program),)
