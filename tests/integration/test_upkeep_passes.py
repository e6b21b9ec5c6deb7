"""Upkeep of a running host has passes of the loop of its own."""

from __future__ import annotations

import queue
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.programs.host import Host
from odradek.waiting.step_runner import StepRunner
from odradek.waiting.steps import Steps
from support.hosts import running_host

STEPS = 5
SLOW_NS = 2_000_000
"""Longer than a turn, so that each step has one."""


@pytest.mark.parametrize(
    "runner_of",
    [
        pytest.param(lambda host: host.ground.log_work.runner, id="runner"),
        pytest.param(lambda host: host.ground.log_work.flusher, id="flusher"),
    ],
)
def test_a_pass_of_the_loop_has_one_piece_of_long_work(
    tmp_path: Path, runner_of: Callable[[Host], StepRunner]
) -> None:
    seen: queue.Queue[bool] = queue.Queue()

    def watch(host: Host) -> None:
        do_work, runner, is_piece = host.turns.do_work, runner_of(host), False

        def piece() -> None:
            nonlocal is_piece
            is_piece = True
            do_work()
            is_piece = False

        def upkeep() -> Steps:
            for _ in range(STEPS):
                seen.put(is_piece)
                until_ns = runner.monotonic_ns() + SLOW_NS
                while runner.monotonic_ns() < until_ns:
                    pass
                yield None

        host.turns.do_work = piece  # type: ignore[method-assign]
        runner.run(upkeep())

    with running_host(tmp_path, before_start=watch):
        found = [seen.get(timeout=10) for _ in range(STEPS)]

    assert all(found)
