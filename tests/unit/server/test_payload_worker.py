"""The process of a payload worker: how it starts, and how it ends when its host is killed."""

from __future__ import annotations

import io
import pickle
import signal
import sys
from collections.abc import Callable
from functools import partial

import pytest

from odradek.server.plugins.giving_way import SLICE_S
from odradek.server.plugins.worker_process import LENGTH, serve


def framed(work: object) -> bytes:
    message = pickle.dumps(work)
    return LENGTH.pack(len(message)) + message


def request(size: int) -> bytes:
    return framed(partial(bytes, size))


def interval_s() -> float:
    """How often the process gives way now."""
    return signal.getitimer(signal.ITIMER_REAL)[1]


def noted() -> Callable[[], float]:
    """A work that tells how often the process gave way while the work was read."""
    return partial(float, interval_s())


class Read:
    """Pickled work that is made by `noted` when it is read, as an import would be."""

    def __reduce__(self) -> tuple[Callable[[], object], tuple[()]]:
        return noted, ()


def test_works_are_answered_until_the_pipe_ends() -> None:
    answers = io.BytesIO()

    serve(io.BytesIO(request(3) + request(5)), answers)

    expected = b""
    for size in (3, 5):
        message = pickle.dumps(bytes(size), pickle.HIGHEST_PROTOCOL)
        expected += LENGTH.pack(len(message)) + message
    assert answers.getvalue() == expected


@pytest.mark.parametrize("sent", [0, 3, 4, 5, len(request(3)) - 1])
def test_a_cut_request_ends_the_worker(sent: int) -> None:
    answers = io.BytesIO()

    serve(io.BytesIO(request(3)[:sent]), answers)

    assert answers.getvalue() == b""


@pytest.mark.skipif(sys.platform == "win32", reason="no interval timer")
def test_a_worker_gives_way_while_it_reads_and_imports_its_work() -> None:
    answers = io.BytesIO()

    serve(io.BytesIO(framed(Read())), answers)

    assert pickle.loads(answers.getvalue()[LENGTH.size :]) == pytest.approx(SLICE_S, abs=1e-4)
    assert interval_s() == 0
