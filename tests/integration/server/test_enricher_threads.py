"""The threads of an enricher that blocks."""

from __future__ import annotations

import asyncio
from queue import Queue

import pytest

from odradek.hosting.enricher_threads import EnricherThreads


def test_threads_that_take_the_last_call_meanwhile_do_not_disturb_the_close(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> list[bool]:
        threads = EnricherThreads("mine", asyncio.get_running_loop())
        threads.call(lambda: None)
        monkeypatch.setattr(Queue, "empty", lambda _: False)  # as it was just before
        threads.close(10)
        return [thread.is_alive() for thread in threads.threads]

    assert not any(asyncio.run(main()))
