"""Files are flushed by threads, and the loop learns of the end."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from odradek.process.file_threads import FileThreads
from odradek.programs.config import load_config
from odradek.programs.host import Host
from support.hosts import LOOPBACK
from support.stop_order import watch_stop


def test_files_are_flushed_on_other_threads() -> None:
    seen: list[Any] = []

    async def scenario() -> None:
        threads = FileThreads()
        done = asyncio.Event()

        def finished(result: Any) -> None:
            seen.extend((result, threading.current_thread() is threading.main_thread()))
            done.set()

        threads.offload(lambda: threading.current_thread() is threading.main_thread(), finished)
        await done.wait()
        await threads.close()

    asyncio.run(scenario())

    assert seen == [False, True]


def test_no_timed_action_needs_a_file_thread_after_the_threads_have_ended(tmp_path: Path) -> None:
    config = load_config(None, [f"listeners={LOOPBACK}", f"data.dir={tmp_path / 'data'}"])
    ended: list[str] = []

    async def scenario() -> None:
        host = Host(config)
        await host.start()
        watch_stop(host, ended)
        await host.stop()

    asyncio.run(scenario())

    assert ended == ["threads"]
