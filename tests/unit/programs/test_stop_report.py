"""A program that stops says what it waits for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from odradek.programs.config import load_config
from odradek.programs.spine import Part, Spine
from odradek.testing.clock import MockClock


def test_a_line_each_five_seconds_names_what_the_stop_waits_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "odradek")
    clock = MockClock()

    async def stopped() -> None:
        spine = Spine(load_config(None, [f"data.dir={tmp_path}"], ()), clock)
        first, last = asyncio.Event(), asyncio.Event()
        spine.parts += [
            Part(stop=last.wait, waits_for=lambda: "logs"),
            Part(stop=first.wait, waits_for=lambda: "3 connections"),
        ]
        clock.timer = spine.stop_report.timer
        stopping = asyncio.create_task(spine.stop())
        await asyncio.sleep(0)
        clock.advance(4_999)
        assert caplog.records == []
        clock.advance(5_001)
        first.set()
        while spine.stopping is spine.parts[1]:
            await asyncio.sleep(0)
        clock.advance(5_000)
        last.set()
        await stopping
        clock.advance(5_000)

    asyncio.run(stopped())

    lines = [(each.message, each.__dict__["waits_for"], each.__dict__["for_s"]) for each in caplog.records]
    assert lines == [
        ("still stopping", "3 connections", 5),
        ("still stopping", "3 connections", 10),
        ("still stopping", "logs", 15),
    ]
