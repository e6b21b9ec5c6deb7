"""What a failed call of a plugin leaves behind."""

from __future__ import annotations

import asyncio
import gc

from odradek.hosting.bounded_call import bounded


class DownError(Exception):
    """The failure of a plugin. Its frames hold a batch."""


async def deliver() -> None:
    raise DownError


async def failed_call() -> None:
    try:
        await bounded(deliver, 1)
    except DownError:
        return


def test_a_failed_call_is_freed_at_once() -> None:
    gc.disable()
    try:
        asyncio.run(failed_call())
        left = [each for each in gc.get_objects() if isinstance(each, DownError)]
    finally:
        gc.enable()

    assert left == []
