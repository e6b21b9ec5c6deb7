"""Rules about a client's reaction to a refused push."""

from __future__ import annotations

import pytest

from odradek.wire.error_code import ErrorCode
from support.conversations import ME, Conversation

UNKNOWN = ErrorCode.UNKNOWN_SUBSCRIPTION_ID
CODEC = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
THROTTLED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
TOO_LARGE = ErrorCode.TELEMETRY_TOO_LARGE
INVALID = ErrorCode.INVALID_RECORD


def refused(error: ErrorCode) -> Conversation:
    """A client whose second push was refused."""
    return Conversation().handshake(0).push(1).push(2, error=error)


@pytest.mark.parametrize("error", [UNKNOWN, CODEC, THROTTLED, TOO_LARGE, INVALID])
def test_an_error_that_never_came_is_unseen(error: ErrorCode) -> None:
    talk = Conversation().handshake(0).push(1)

    assert talk.verdict(error.name, until=9) == ("unseen", "no push was refused with this error")


@pytest.mark.parametrize("error", [UNKNOWN, CODEC])
def test_the_client_asks_for_its_subscription(error: ErrorCode) -> None:
    assert refused(error).handshake(2.25, asked_id=ME).verdict(error.name) == (
        "ok",
        "requested its subscription after 0.25 of the interval",
    )
    assert refused(error).push(3).verdict(error.name) == (
        "wrong",
        "pushed after 1.00 of the interval as before",
    )
    assert refused(error).push(2.5, terminating=True).rule(error.name).verdict == "unseen"


def test_an_unsupported_codec_is_answered_with_another_codec() -> None:
    assert refused(CODEC).push(3, codec=0).rule(CODEC.name).verdict == "ok"
    assert refused(UNKNOWN).push(3, codec=0).rule(UNKNOWN.name).verdict == "wrong"


@pytest.mark.parametrize("error", [THROTTLED, TOO_LARGE])
def test_the_client_waits_for_an_interval(error: ErrorCode) -> None:
    assert refused(error).push(3).rule(error.name).verdict == "ok"
    assert refused(error).handshake(3.5, asked_id=ME).rule(error.name).verdict == "ok"
    assert refused(error).push(2.8).verdict(error.name) == ("wrong", "pushed after 0.80 of the interval")
    assert refused(error).handshake(2.1, asked_id=ME).rule(error.name).verdict == "wrong"


@pytest.mark.parametrize("error", [UNKNOWN, CODEC, THROTTLED, TOO_LARGE])
def test_lasting_silence_fails(error: ErrorCode) -> None:
    assert refused(error).verdict(error.name, until=3.9) == ("unseen", "nothing followed in time")
    assert refused(error).verdict(error.name, until=4) == ("wrong", "sent nothing more")


def test_an_invalid_record_ends_telemetry() -> None:
    assert refused(INVALID).verdict(INVALID.name, until=4) == ("ok", "stopped pushing")
    assert refused(INVALID).verdict(INVALID.name, until=3) == ("unseen", "nothing followed in time")
    assert refused(INVALID).push(3).rule(INVALID.name).verdict == "wrong"
    assert refused(INVALID).handshake(3, asked_id=ME).rule(INVALID.name).verdict == "wrong"


def test_one_wrong_reaction_of_several_fails() -> None:
    talk = refused(UNKNOWN).handshake(2, asked_id=ME).push(3, error=UNKNOWN).push(4)

    assert talk.rule(UNKNOWN.name).verdict == "wrong"


def test_a_refused_terminating_push_requires_no_reaction() -> None:
    talk = Conversation().handshake(0).push(1).push(2, error=UNKNOWN, terminating=True)

    assert talk.verdict(UNKNOWN.name, until=9) == ("unseen", "no push was refused with this error")
