"""One blocking request: its time limit, its bound, and what it says when there is no answer."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.endpoints.http_exchange import NoAnswer, exchange
from odradek.endpoints.tls_context import default_context
from support.hostile_sinks import SLOW, Sink, plain, sinking
from support.issuer import own_certificate
from support.waiting import PATIENCE_S

Contexts = tuple[ssl.SSLContext | None, ssl.SSLContext | None]


@pytest.fixture(params=["plain", "tls"])
def contexts(request: pytest.FixtureRequest, tmp_path: Path) -> Contexts:
    """Of the server and of the client."""
    if request.param == "plain":
        return None, None
    certificate, context = own_certificate(tmp_path)
    return context, default_context(cafile=certificate)


@pytest.fixture
def large_answer(contexts: Contexts) -> Iterator[Sink]:
    with sinking(plain(200, b"x" * 1000), contexts[0]) as sink:
        yield sink


def test_a_body_within_the_bound(large_answer: Sink, contexts: Contexts) -> None:
    answer = exchange(large_answer.url, timeout_s=PATIENCE_S, max_bytes=1000, tls=contexts[1])

    assert (answer.status, answer.text) == (200, "x" * 1000)


def test_of_a_longer_body_one_byte_more_is_returned(large_answer: Sink, contexts: Contexts) -> None:
    answer = exchange(large_answer.url, timeout_s=PATIENCE_S, max_bytes=10, tls=contexts[1])

    assert answer.body == b"x" * 11


@pytest.mark.parametrize("name", SLOW)
def test_slow_answers(name: str, contexts: Contexts) -> None:
    with sinking(SLOW[name], contexts[0]) as sink, pytest.raises(NoAnswer, match=r"no answer within 0\.2 s"):
        exchange(sink.url, timeout_s=0.2, max_bytes=1 << 20, body=b"{}", tls=contexts[1])


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with sinking(plain(200, b"proxied")) as sink:
        monkeypatch.setenv("http_proxy", sink.url)
        monkeypatch.delenv("no_proxy", raising=False)
        answer = exchange("http://hook.test/alarm", timeout_s=PATIENCE_S, max_bytes=100, body=b"{}")

    assert answer.text == "proxied"
    assert sink.requests == ["POST http://hook.test/alarm"]


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://127.0.0.1:1/secret", "Connection refused"),
        ("http://a..b/secret", "label empty or too long"),
        ("http://127.0.0.1:1/secret key", "the URL has a blank or a control character"),
        ("http://127.0.0.1:1/secret\x07", "the URL has a blank or a control character"),
        ("ftp://127.0.0.1/secret", "unknown url type: ftp"),
        ("file:///etc/secret", "unknown url type: file"),
    ],
)
def test_no_answer_says_why_without_the_path(url: str, problem: str) -> None:
    with pytest.raises(NoAnswer, match=problem) as failure:
        exchange(url, timeout_s=PATIENCE_S, max_bytes=1)

    assert "secret" not in str(failure.value)
