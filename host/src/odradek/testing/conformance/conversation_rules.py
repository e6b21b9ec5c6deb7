"""Rules about ids, codecs and sizes, for which a client must follow the last handshake."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.testing.conformance.exchange import ClientInstance, Handshake, Pushed
from odradek.testing.conformance.finding import Finding, Observation, ok, unseen, wrong
from odradek.topic.telemetry_topic import CODECS
from odradek.wire.error_code import ErrorCode
from odradek.wire.types import NIL_UUID

NO_HANDSHAKE = unseen("no handshake was seen")
NO_PUSH = unseen("no push was seen")


def instance_id(instance: ClientInstance, seen: Observation) -> Finding:
    """The client requests an id once, and uses the one it was given."""
    others = given_elsewhere(instance, seen)
    handshakes = [each for each in instance.handshakes if each.error is ErrorCode.NONE]
    if not handshakes:
        return wrong("pushed with an id that it was not given") if others else NO_HANDSHAKE
    if handshakes[0].asked_id != NIL_UUID:
        return unseen("the first handshake was not seen")
    if others:
        return wrong("requested an id again")
    if len(handshakes) == 1 and not instance.pushes:
        return unseen("nothing followed the handshake")
    return ok(f"used one id in {len(handshakes)} handshakes and {len(instance.pushes)} pushes")


def given_elsewhere(instance: ClientInstance, seen: Observation) -> bool:
    """Whether a connection of the instance had been given another id before."""
    first = instance.exchanges[0]
    before = seen.exchanges[: seen.exchanges.index(first)]
    return any(
        isinstance(each, Handshake)
        and each.error is ErrorCode.NONE
        and each.context.connection.connection_id == first.context.connection.connection_id
        and each.client_instance_id != instance.client_instance_id
        for each in before
    )


def told(instance: ClientInstance) -> Iterator[tuple[Handshake, Pushed]]:
    """Yield each push with the last handshake before it."""
    for index, each in enumerate(instance.exchanges):
        handshake = instance.handshake_before(index)
        if isinstance(each, Pushed) and handshake is not None:
            yield handshake, each


def subscription_id(instance: ClientInstance, seen: Observation) -> Finding:
    """A push carries the subscription id of the last handshake."""
    pairs = list(told(instance))
    if not pairs:
        return NO_HANDSHAKE
    strange = [
        push for handshake, push in pairs if push.subscription_id != handshake.response.subscription_id
    ]
    if strange:
        return wrong(f"{len(strange)} of {len(pairs)} pushes carry another subscription id")
    return ok(f"in {len(pairs)} of {len(pairs)} pushes")


def codec_name(number: int) -> str:
    return CODECS[number] if 0 <= number < len(CODECS) else str(number)


def compression(instance: ClientInstance, seen: Observation) -> Finding:
    """A push is compressed with a codec that the host accepts, or not at all."""
    used = ", ".join(sorted({codec_name(push.codec) for push in instance.pushes}))
    pairs = list(told(instance))
    if not pairs:
        return unseen(f"{used}; the accepted codecs are not known") if used else NO_PUSH
    for handshake, push in pairs:
        if push.codec and push.codec not in handshake.response.accepted_compression_types:
            return wrong(f"{codec_name(push.codec)} is not among the accepted codecs")
    return ok(used)


def size(instance: ClientInstance, seen: Observation) -> Finding:
    """A push is not larger than the host allows."""
    pairs = [
        (handshake, push.sent_bytes) for handshake, push in told(instance) if push.sent_bytes is not None
    ]
    if not pairs:
        return unseen("neither the sizes nor the limit are known")
    for handshake, sent_bytes in pairs:
        if sent_bytes > handshake.response.telemetry_max_bytes:
            return wrong(f"{sent_bytes} bytes, the limit is {handshake.response.telemetry_max_bytes}")
    return ok(f"up to {max(sent_bytes for _, sent_bytes in pairs)} bytes")
