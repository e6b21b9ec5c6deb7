"""Jars that do not come with PySpark, from Maven Central."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

MAVEN_TIMEOUT_S = 300


def jar(artifact: str) -> Path:
    """A jar from Maven, kept in its repository."""
    group, name, version = artifact.split(":")
    found = (
        Path.home()
        / ".m2"
        / "repository"
        / group.replace(".", "/")
        / name
        / version
        / f"{name}-{version}.jar"
    )
    if not found.exists():
        if shutil.which("mvn") is None:
            pytest.skip("Maven is not installed")
        command = ["mvn", "-B", "-q", "dependency:get", "-Dtransitive=false", f"-Dartifact={artifact}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=MAVEN_TIMEOUT_S, check=False)
        if done.returncode or not found.exists():
            pytest.skip(f"no {artifact}: {done.stdout[-200:]}")
    return found
