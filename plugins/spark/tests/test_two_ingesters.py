"""Two concurrent ingesters of one topic into one dataset: one continues, the other reports why it stops."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from ingested import every, is_exactly, offsets, until
from spark_topics import TOPIC, fill, records

import odradek.testing
from odradek_tables.dataset import DatasetError

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
PROGRAM = (sys.executable, "-m", "odradek", "spark")
PATIENCE_S = 300
PARTITIONS = 2


@contextmanager
def ingesting(bootstrap: str, folder: Path, name: str, checkpoint: str) -> Iterator[subprocess.Popen[bytes]]:
    """``odradek spark ingest``, in its own process group; its output is in ``NAME.log``."""
    where = ("--bootstrap-server", bootstrap, "--topic", TOPIC, "--dataset", "tables")
    how = ("--checkpoint", str(folder / checkpoint), "--master", "local[1]", "--trigger-interval-ms", "500")
    with (folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            [*PROGRAM, "ingest", *where, *how],
            stdout=log,
            stderr=log,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def succeed(folder: Path, *arguments: str) -> None:
    """Run a command, which must succeed."""
    finished = subprocess.run(
        [*PROGRAM, *arguments, "--dataset", "tables", "--master", "local[1]"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
        check=False,
    )
    assert finished.returncode == 0, finished.stderr[-3000:] + finished.stdout


def reached(dataset: Path) -> int:
    """The number of ingested pushes."""
    try:
        return len(offsets(dataset))
    except DatasetError:  # not created yet
        return 0


OF_THE_TABLES = "another ingester writes to this dataset, or the topic was deleted and created again"
OF_THE_CHECKPOINT = "another ingester uses the checkpoint"
"""Which of them notices first is a race if both use one checkpoint."""


@pytest.mark.parametrize(
    ("checkpoints", "is_later", "said"),
    [
        (("one", "other"), False, [OF_THE_TABLES]),
        pytest.param(("one", "one"), True, [OF_THE_CHECKPOINT, OF_THE_TABLES], marks=pytest.mark.nightly),
    ],
    ids=["a checkpoint each", "one checkpoint, one later"],
)
def test_one_continues_and_the_other_reports_why_it_stops(
    checkpoints: tuple[str, str], is_later: bool, said: list[str], tmp_path: Path
) -> None:
    dataset, count = tmp_path / "tables", 0
    with odradek.testing.host() as host:
        host.topics.create(TOPIC, PARTITIONS)

        def fed() -> int:
            fill(host.bootstrap, records(10, first=count, partitions=PARTITIONS))
            return count + 10

        with ExitStack() as stack:
            both: dict[str, subprocess.Popen[bytes]] = {}
            for name, checkpoint in zip(("first", "second"), checkpoints, strict=True):
                if both and is_later:
                    until(lambda: reached(dataset) > 0, PATIENCE_S)
                both[name] = stack.enter_context(ingesting(host.bootstrap, tmp_path, name, checkpoint))
                count = fed()

            def one_has_ended() -> bool:
                nonlocal count
                count = fed()
                return any(each.poll() is not None for each in both.values())

            until(one_has_ended, PATIENCE_S)
            (name, ended), *more = [each for each in both.items() if each[1].poll() is not None]
            count = fed()
            until(lambda: reached(dataset) == count, PATIENCE_S)
            last_line = (tmp_path / f"{name}.log").read_text().splitlines()[-1]
            assert (ended.returncode, more) == (1, [])
            assert last_line.startswith("odradek: "), last_line
            assert any(each in last_line for each in said), last_line

        # both are killed now; the one with a valid checkpoint continues
        count = fed()
        going_on = checkpoints[1 if name == "first" else 0]
        source = ("--bootstrap-server", host.bootstrap, "--topic", TOPIC)
        succeed(tmp_path, "ingest", "--once", *source, "--checkpoint", str(tmp_path / going_on))

    assert is_exactly(dataset, every(count, PARTITIONS))
