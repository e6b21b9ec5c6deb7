"""Rules about ids, codecs and sizes in a conversation."""

from __future__ import annotations

from odradek.wire.error_code import ErrorCode
from support.conversations import ME, Conversation

OTHER = bytes(16 * [7])


def test_asking_for_an_id_once_passes() -> None:
    talk = Conversation().handshake(0).push(1).handshake(2, asked_id=ME).push(3)

    assert talk.verdict("instance id") == ("ok", "used one id in 2 handshakes and 2 pushes")


def test_asking_for_an_id_again_fails() -> None:
    talk = Conversation().handshake(0, given_id=OTHER).handshake(1).push(2)

    assert talk.verdict("instance id") == ("wrong", "requested an id again")


def test_using_an_id_that_the_host_did_not_assign_fails() -> None:
    talk = Conversation().handshake(0, given_id=OTHER).push(1)

    assert talk.verdict("instance id") == ("wrong", "pushed with an id that it was not given")


def test_a_restarted_client_has_another_connection_and_another_id() -> None:
    before, after = Conversation().handshake(0, given_id=OTHER), Conversation().handshake(1).push(2)
    for each in after.exchanges:
        each.context.connection.connection_id = "another"
    before.exchanges += after.exchanges

    assert before.rule("instance id").verdict == "ok"


def test_pushes_alone_leave_the_id_rule_unseen() -> None:
    assert Conversation().push(1).verdict("instance id") == ("unseen", "no handshake was seen")


def test_a_client_from_before_the_recording_leaves_the_first_id_unseen() -> None:
    talk = Conversation().handshake(0, asked_id=ME).push(1)

    assert talk.verdict("instance id") == ("unseen", "the first handshake was not seen")


def test_a_failed_handshake_belongs_to_the_next_instance() -> None:
    talk = Conversation().handshake(0, error=None).handshake(1).push(2)

    report = talk.report()

    assert (report.handshakes, len(report.client_instance_ids)) == (2, 1)


def test_a_push_with_an_unassigned_subscription_id_fails() -> None:
    talk = (
        Conversation().handshake(0, subscription_id=7).push(1, subscription_id=7).push(2, subscription_id=8)
    )

    assert talk.verdict("subscription id") == ("wrong", "1 of 2 pushes carry another subscription id")


def test_a_codec_that_was_not_offered_fails() -> None:
    assert Conversation().handshake(0).push(1, codec=9).verdict("compression") == (
        "wrong",
        "9 is not among the accepted codecs",
    )
    assert Conversation().handshake(0).push(1, codec=0).verdict("compression") == ("ok", "none")


def test_a_push_above_the_size_limit_fails() -> None:
    talk = Conversation().handshake(0).push(1, sent_bytes=1_001, error=ErrorCode.TELEMETRY_TOO_LARGE)

    assert talk.verdict("size") == ("wrong", "1001 bytes, the limit is 1000")
