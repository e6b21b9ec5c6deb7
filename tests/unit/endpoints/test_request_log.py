"""What an HTTP server logs of requests."""

from __future__ import annotations

import logging

import pytest

from odradek.endpoints.request_log import RequestLog


def test_a_client_that_leaves_in_a_request_is_no_failure_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    log = RequestLog(lambda: 0.0)
    message = "Error handling request from %s"

    with caplog.at_level(logging.INFO):
        log.exception(message, "192.0.2.1", exc_info=ConnectionResetError("lost"))
        before = list(caplog.records)
        log.exception(message, "192.0.2.1", exc_info=ValueError("a bug"))

    assert before == []
    assert [each.levelno for each in caplog.records] == [logging.ERROR]
