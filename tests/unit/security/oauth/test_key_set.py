"""When keys are fetched, and which documents are keys."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from odradek.security.oauth.bearer_token import TokenRefused
from odradek.security.oauth.json_web_keys import MAX_KEYS, BadKeySet, read_key_set
from odradek.security.oauth.key_set import MISSING_KID_MS, KeySet, RefreshTimes
from odradek.testing.clock import MockClock
from support.tokens import jwks, public_jwk

TIMES = RefreshTimes()


class Endpoint:
    """A JWKS that the test changes."""

    def __init__(self) -> None:
        self.clock = MockClock()
        self.document: bytes | Exception = jwks()
        self.fetched = 0
        self.waiting: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []
        self.keys = KeySet("https://idp/keys", self.fetch, TIMES, self.clock, self.clock.timer, self.offload)

    def fetch(self) -> bytes:
        self.fetched += 1
        if isinstance(self.document, Exception):
            raise self.document
        return self.document

    def offload(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        self.waiting.append((work, done))

    def finish(self) -> None:
        """Finish the fetch that is under way."""
        while self.waiting:
            work, done = self.waiting.pop(0)
            try:
                outcome = work()
            except Exception as error:  # noqa: BLE001  as a thread would
                outcome = error
            done(outcome)

    def start(self) -> None:
        self.keys.refresh()
        self.finish()

    def has(self, kid: str | None, algorithm: str = "RS256") -> bool:
        try:
            self.keys.find(kid, algorithm)
        except TokenRefused:
            return False
        return True


@pytest.fixture
def endpoint() -> Endpoint:
    return Endpoint()


def test_the_keys_are_fetched_at_intervals(endpoint: Endpoint) -> None:
    endpoint.start()
    endpoint.document = jwks(public_jwk(kid="k2"))

    endpoint.clock.advance(TIMES.refresh_ms)
    endpoint.finish()

    assert endpoint.fetched == 2
    assert endpoint.has("k2")
    assert not endpoint.has("k1")


def test_no_token_waits_for_a_fetch(endpoint: Endpoint) -> None:
    endpoint.start()
    endpoint.document = jwks(public_jwk(kid="k2"))

    first = endpoint.has("k2")
    endpoint.finish()
    second = endpoint.has("k2")

    assert (first, second) == (False, True)


def test_an_unknown_key_id_is_asked_for_once_a_minute(endpoint: Endpoint) -> None:
    endpoint.start()
    for _ in range(100):
        endpoint.has("k2")
        endpoint.finish()
        endpoint.clock.advance(MISSING_KID_MS // 100)
    fetched_in_a_minute = endpoint.fetched - 1

    endpoint.has("k2")
    endpoint.finish()

    assert fetched_in_a_minute == 1
    assert endpoint.fetched == 3


def test_many_unknown_key_ids_cause_few_fetches(endpoint: Endpoint) -> None:
    endpoint.start()

    for number in range(1_000):
        endpoint.has(f"k-{number}")
        endpoint.finish()
        endpoint.clock.advance(30)

    assert endpoint.fetched == 1 + 30_000 // TIMES.retry_max_ms
    assert len(endpoint.keys.missing) <= 16


@pytest.mark.parametrize(
    ("kid", "algorithm"), [(None, "RS256"), ("x" * 1_001, "RS256"), ("k2", "HS256"), ("k1", "ES256")]
)
def test_what_cannot_be_a_new_key_causes_no_fetch(
    endpoint: Endpoint, kid: str | None, algorithm: str
) -> None:
    endpoint.document = jwks(public_jwk("EdDSA"))
    endpoint.start()

    found = endpoint.has(kid, algorithm)

    assert not found
    assert endpoint.waiting == []


def test_a_fetch_is_not_begun_twice(endpoint: Endpoint) -> None:
    endpoint.keys.refresh()
    endpoint.keys.refresh()

    assert len(endpoint.waiting) == 1


@pytest.mark.parametrize("failure", [OSError("no route"), b"not JSON", b'{"keys": []}'])
def test_a_failure_keeps_the_keys_and_is_logged_once(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture, failure: Exception | bytes
) -> None:
    caplog.set_level(logging.ERROR)
    endpoint.start()
    endpoint.document = failure
    endpoint.clock.advance(TIMES.refresh_ms)
    endpoint.finish()
    endpoint.clock.advance(TIMES.retry_ms)
    endpoint.finish()

    assert endpoint.has("k1")
    assert endpoint.keys.failures == 2
    assert len(caplog.records) == 1
    assert caplog.records[0].__dict__["url"] == "https://idp/keys"


def test_a_failed_fetch_is_tried_again_later_and_later(endpoint: Endpoint) -> None:
    endpoint.document = OSError("down")
    endpoint.start()
    began_ms = endpoint.clock.monotonic_ms()
    tries: list[int] = []
    while len(tries) < 9:
        deadline_ms = endpoint.clock.timer.next_deadline_ms()
        assert deadline_ms is not None
        endpoint.clock.advance(deadline_ms - endpoint.clock.monotonic_ms())
        endpoint.finish()
        tries.append(deadline_ms - began_ms)
        began_ms = deadline_ms

    assert tries == [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]


def test_a_success_ends_the_back_off(endpoint: Endpoint) -> None:
    endpoint.document = OSError("down")
    endpoint.start()
    endpoint.document = jwks()
    endpoint.clock.advance(TIMES.retry_ms)
    endpoint.finish()

    assert endpoint.has("k1")
    assert endpoint.clock.timer.next_deadline_ms() == endpoint.clock.monotonic_ms() + TIMES.refresh_ms


def test_a_stopped_set_plans_nothing(endpoint: Endpoint) -> None:
    endpoint.start()

    endpoint.keys.stop()

    assert len(endpoint.clock.timer) == 0


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'{"keys": {}}', id="keys are no list"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(jwks(*[public_jwk()] * (MAX_KEYS + 1)), id="too many"),
        pytest.param(b'{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}', id="a secret"),
        pytest.param(b'{"keys": [1, null, {}, {"kty": "RSA"}, {"kty": "EC", "crv": 1}]}', id="no keys"),
        pytest.param(jwks(public_jwk(use="enc")), id="for encryption"),
        pytest.param(jwks(public_jwk(alg="HS256")), id="for HS256"),
        pytest.param(jwks(public_jwk(kid="x" * 1_001)), id="long kid"),
        pytest.param(jwks(public_jwk(n="AQAB" * 10)), id="a short key"),
    ],
)
def test_documents_without_a_key(document: bytes) -> None:
    with pytest.raises(BadKeySet):
        read_key_set(document)


def test_keys_that_cannot_be_used_do_not_hide_others() -> None:
    rows = [{"kty": "oct", "k": "c2VjcmV0"}, public_jwk("ES256", kid="e"), {"kty": "DH"}, public_jwk()]

    keys = read_key_set(json.dumps({"keys": rows, "more": 1}).encode())

    assert [key.kid for key in keys] == ["e", "k1"]
