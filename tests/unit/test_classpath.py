"""Builds of Java sources: tests are skipped without Maven, and fail if a source does not compile."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from contrib.java import classpath

MAVEN = "[ERROR] /src/Relay.java:[12,5] cannot find symbol"
JAVAC = "Relay.java:12: error: cannot find symbol"


def failing(monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    """Let each command fail with this output."""
    failed = subprocess.CompletedProcess(["mvn"], 1, output, "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/mvn")


@pytest.mark.parametrize("output", [MAVEN, JAVAC], ids=["Maven", "javac"])
def test_a_source_that_does_not_compile_is_an_error(monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    failing(monkeypatch, output)

    with pytest.raises(classpath.CompileError, match="cannot find symbol"):
        classpath.run(["mvn"], 1)


def test_artifacts_that_cannot_be_downloaded_are_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, "[ERROR] Could not transfer artifact\nmore")

    with pytest.raises(classpath.UnavailableError, match=r"mvn failed: .* transfer artifact$"):
        classpath.run(["mvn"], 1)
