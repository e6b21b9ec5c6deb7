"""The file of a gateway's kill switch, and what may stand in its place."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from odradek.net.pairs.gateway import SWITCH_MS
from odradek.programs.config import load_config
from odradek.programs.gateway_pairs import pairs_of
from odradek.testing.clock import MockClock
from support.no_files import NO_FILES, no_file


class Followed:
    """A gateway that follows a file."""

    def __init__(self, path: Path) -> None:
        self.clock = MockClock()
        config = load_config(None, ("gateway.upstream=kafka:9092",), ())
        self.gateway = pairs_of(config, [("kafka", 9092)], None, False, self.clock, self.clock.timer)
        self.gateway.follow_file(path, self.clock.timer)

    def second(self) -> str:
        """The step after the next look at the file."""
        self.clock.advance(SWITCH_MS)
        return self.gateway.switch.step


def problems(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [vars(each)["problem"] for each in caplog.records if each.levelno == logging.ERROR]


@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_changes_nothing_and_is_named(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "switch"
    path.write_text("no-telemetry\n")
    followed = Followed(path)
    path.unlink()
    no_file(kind, path)

    steps = [followed.second() for _ in range(3)]

    assert steps == ["no-telemetry"] * 3
    assert problems(caplog) == [f"it is {kind}, expected a file"]


def test_a_file_of_any_size_is_read_up_to_a_bound(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "switch"
    with path.open("wb") as file:
        file.truncate(1 << 40)

    step = Followed(path).second()

    assert step == "full"
    assert problems(caplog) == ["larger than 64 bytes"]


def test_the_step_that_was_taken_by_hand_stays_while_the_file_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "switch"
    path.write_text("full")
    followed = Followed(path)
    followed.gateway.step_down()
    path.unlink()
    path.mkdir()
    unreadable = followed.second()
    path.rmdir()
    path.write_text("full")
    readable_again = followed.second()
    path.write_text("rewrite-only")

    assert (unreadable, readable_again, followed.second()) == (
        "no-observation",
        "no-observation",
        "rewrite-only",
    )
