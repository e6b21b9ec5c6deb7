"""The topics in a consumer's subscription metadata."""

from __future__ import annotations

import pytest

from odradek.group.consumer_subscription import subscribed_topics
from odradek.wire.codec import encode
from odradek.wire.messages.consumer_protocol import ConsumerProtocolSubscription


def metadata(version: int, *topics: str) -> bytes:
    written = min(version, 3)
    return version.to_bytes(2) + encode(ConsumerProtocolSubscription(topics=list(topics)), written)


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 99])
def test_topics_are_read_in_every_version(version: int) -> None:
    topics = subscribed_topics(metadata(version, "a", "b") + b"and more")

    assert topics == frozenset({"a", "b"})


@pytest.mark.parametrize(
    "bad", [b"", b"\x00", b"\x00\x00\x7f\xff\xff\xff", b"\xff\xff\x00\x00\x00\x00", b"x" * 9]
)
def test_bytes_that_are_not_a_subscription_give_no_topics(bad: bytes) -> None:
    assert subscribed_topics(bad) is None


@pytest.mark.parametrize("version", [-1, 1, 2, 3])
def test_a_subscription_that_lacks_the_fields_of_its_version_is_read(version: int) -> None:
    bytes_of_version_0 = metadata(0, "a", "b")[2:]

    assert subscribed_topics(version.to_bytes(2, signed=True) + bytes_of_version_0) == frozenset({"a", "b"})
