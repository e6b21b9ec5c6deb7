"""What an HTTP server logs of requests."""

from __future__ import annotations

import logging

import pytest
from aiohttp.http_exceptions import BadHttpMethod, BadStatusLine

from odradek.endpoints.bad_requests import BAD_REQUEST
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


def test_a_bad_request_names_the_client_and_what_to_check(caplog: pytest.LogCaptureFixture) -> None:
    message = "Error handling request from %s"

    with caplog.at_level(logging.INFO):
        RequestLog(lambda: 0.0).exception(message, "192.0.2.1", exc_info=BadStatusLine("x"))
        RequestLog(lambda: 0.0).debug(message, "192.0.2.2", exc_info=BadHttpMethod("\x16\x03"))
        RequestLog(lambda: 0.0).debug("Uncompleted request.")

    assert [(each.message, vars(each)["address"]) for each in caplog.records] == [
        (BAD_REQUEST, "192.0.2.1"),
        (BAD_REQUEST, "192.0.2.2"),
    ]
