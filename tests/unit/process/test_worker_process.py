"""The process of a payload worker: how it starts, and how it ends when its host is killed."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from odradek.process import worker_process
from odradek.process.giving_way import SharedCore
from odradek.process.worker_process import LENGTH, serve

events: list[str] = []
"""The steps of the worker, in order."""


def framed(work: object) -> bytes:
    message = pickle.dumps(work)
    return LENGTH.pack(len(message)) + message


def request(size: int) -> bytes:
    return framed(partial(bytes, size))


def read_work() -> Callable[[], None]:
    """Make a work that notes its end. Unpickling calls this, as it would import a module."""
    events.append("read")
    return partial(events.append, "done")


class Work:
    """Pickled, it is what `read_work` makes."""

    def __reduce__(self) -> tuple[Callable[[], object], tuple[()]]:
        return read_work, ()


@contextmanager
def noted(_core: SharedCore) -> Iterator[None]:
    events.append("gives way")
    yield
    events.append("rests")


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


def test_a_worker_gives_way_while_it_loads_its_work_and_lowers_its_priority_after_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events.clear()
    monkeypatch.setattr(worker_process, "giving_way", noted)

    serve(io.BytesIO(framed(Work())), io.BytesIO(), partial(events.append, "lowers its priority"))

    assert events == ["gives way", "read", "lowers its priority", "done", "rests"]


def unreadable() -> None:
    raise ImportError("of the test")


class Unreadable:
    """Pickled, it raises when it is read."""

    def __reduce__(self) -> tuple[Callable[[], object], tuple[()]]:
        return unreadable, ()


def test_a_work_that_cannot_be_loaded_ends_the_worker_instead_of_being_an_answer() -> None:
    answers = io.BytesIO()

    with pytest.raises(ImportError):
        serve(io.BytesIO(framed(Unreadable())), answers)

    assert answers.getvalue() == b""
