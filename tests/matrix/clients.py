"""The commands of the programs of clients, built if they are not in the user's cache."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from contrib.capture.kafka_node import LOGGING, NEWEST, QUICK_START, java_classpath

GO: Final = Path(__file__).resolve().parents[2] / "contrib" / "go"
OPTIONS: Final = ("-Xmx512m", *QUICK_START)
BUILD_S: Final = 900


def java_members() -> Sequence[str]:
    """The newest Java clients.

    Raises:
        subprocess.CalledProcessError: Java, Maven or the artifacts are not available.
    """
    return ("java", *OPTIONS, *LOGGING, "-cp", java_classpath(NEWEST), "odradek.Members")


def go_members() -> Sequence[str]:
    """franz-go.

    Raises:
        subprocess.CalledProcessError: Go or a module is not available.
    """
    cache = os.environ.get("ODRADEK_CLIENTS_CACHE") or Path.home() / ".cache" / "odradek" / "clients"
    program = Path(cache) / "franz-go" / "members"
    subprocess.run(("go", "build", "-o", str(program), "./members"), cwd=GO, timeout=BUILD_S, check=True)
    return (str(program),)
