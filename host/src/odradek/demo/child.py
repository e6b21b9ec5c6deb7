"""The programs that ``odradek demo`` runs beside its host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

STOP_S: Final = 10.0


@asynccontextmanager
async def child(
    command: tuple[str | Path, ...], log: Path, **streams: Any
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a program, and stop it at the end.

    Args:
        command: The program and its arguments.
        log: The file for its output.
        streams: Streams that are not written to the file, as ``create_subprocess_exec`` takes them.
    """
    with log.open("w", encoding="utf-8") as output:
        process = await asyncio.create_subprocess_exec(
            *command, **({"stdout": output, "stderr": output} | streams)
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_S)
        except TimeoutError:
            process.kill()
            await process.wait()


def last_words(log: Path) -> str:
    """The last line of a program's output; empty if it said nothing."""
    words = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return words[-1] if words else ""
