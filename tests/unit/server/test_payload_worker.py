"""The process of a payload worker whose host is killed."""

from __future__ import annotations

import io
import pickle
from functools import partial

import pytest

from odradek.server.plugins.payload_workers import LENGTH, serve


def request(size: int) -> bytes:
    message = pickle.dumps(partial(bytes, size))
    return LENGTH.pack(len(message)) + message


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
