"""The Go programs of benches, built once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from contrib import go_program

from bench.harness import UnavailableError


@cache
def built(name: str, sources: tuple[Path, ...], purpose: str) -> Path:
    """A program that needs nothing but Go's own library.

    Args:
        name: Of the folder in the cache.
        sources: The files.
        purpose: Named if the program cannot be built.

    Raises:
        UnavailableError: There is no Go.
    """

    def build(folder: Path, path: Path) -> None:
        go_program.run(["go", "build", "-o", str(path), "."], folder, CGO_ENABLED="0")

    try:
        return go_program.GoProgram(name=name, sources=sources, build=build).path()
    except go_program.UnavailableError as reason:
        raise UnavailableError(f"{purpose}: {reason}") from reason
