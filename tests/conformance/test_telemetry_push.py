"""Scenarios P1 to P20 (PushTelemetry), under both error policies where they agree."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any, cast

import pytest

from conformance.telemetry_world import DATA, DEFAULT_PROPERTIES, Broken, World, counted, otlp
from odradek.telemetry.pending_push import PendingPush
from odradek.telemetry.telemetry_config import ErrorPolicy
from odradek.wire.compression import Codec, compress
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.push_telemetry import PushTelemetryResponse
from odradek.wire.types import NIL_UUID

NONE = ErrorCode.NONE
THROTTLED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
INVALID_REQUEST = ErrorCode.INVALID_REQUEST
INVALID_RECORD = ErrorCode.INVALID_RECORD
UNKNOWN_SUBSCRIPTION_ID = ErrorCode.UNKNOWN_SUBSCRIPTION_ID
TOO_LARGE = ErrorCode.TELEMETRY_TOO_LARGE


@pytest.fixture(params=list(ErrorPolicy))
def world(request: pytest.FixtureRequest) -> World:
    return World(request.param)


def test_P1_normal_push(world: World) -> None:
    world.update("sub-1", DEFAULT_PROPERTIES)
    told = world.get()

    code = world.push(told)

    instance = world.known(told)
    assert (code, instance.terminating, instance.last_known_error) == (NONE, False, NONE)
    assert world.metric_count() == 11
    assert world.counts(told) == counted(export=1)
    assert world.metric("plugin-export-rate", told) > 0
    assert not world.never_timed(told)
    assert [payload.data for payload in world.receiver.payloads] == [DATA]


def test_P1_kafka_policy_hands_on_bytes_that_are_not_otlp() -> None:
    world = World(ErrorPolicy.KAFKA)
    told = world.get()

    code = world.push(told, b"test-data")

    assert (code, [payload.data for payload in world.receiver.payloads]) == (NONE, [b"test-data"])


def test_P1_client_safe_policy_refuses_bytes_that_are_not_otlp() -> None:
    world = World(ErrorPolicy.CLIENT_SAFE)
    told = world.get()

    code = world.push(told, b"test-data")

    assert (code, world.receiver.payloads) == (INVALID_RECORD, [])
    assert world.counts(told) == counted(error=1)


def test_P2_push_to_a_broker_without_state(world: World) -> None:
    told = World().get()

    code = world.push(told)

    assert (code, world.metric_count(), world.metric("instance-count")) == (NONE, 11, 1)
    assert world.counts(told) == counted(export=1)


def test_P3_second_push_after_the_interval(world: World) -> None:
    world.update("sub-1", DEFAULT_PROPERTIES)
    told = world.get()
    first = world.push(told)
    world.clock.time_ms += 30_000

    second = world.push(told)

    assert (first, second) == (NONE, NONE)


@pytest.mark.parametrize("absent", [None, b""])
def test_P4_no_client_instance_id(world: World, absent: bytes | None) -> None:
    told = replace(world.get(), client_instance_id=cast(Any, absent))

    code = world.push(told)

    assert (code, world.metric("instance-count")) == (INVALID_REQUEST, 1)


def test_P5_nil_client_instance_id(world: World) -> None:
    told = replace(world.get(), client_instance_id=NIL_UUID)

    code = world.push(told)

    assert (code, world.metric("instance-count")) == (INVALID_REQUEST, 1)


def test_P5b_reserved_client_instance_id(world: World) -> None:
    told = replace(world.get(), client_instance_id=bytes(15) + b"\x01")

    code = world.push(told)

    assert (code, world.metric("instance-count")) == (INVALID_REQUEST, 1)


def test_P6_immediate_second_push(world: World) -> None:
    told = world.get()

    codes = [world.push(told) for _ in range(2)]

    instance = world.known(told)
    assert codes == [NONE, THROTTLED]
    assert (instance.last_known_error, instance.terminating) == (THROTTLED, False)
    assert world.counts(told) == counted(export=1, throttle=1)


def test_P7_terminating_push_may_come_early(world: World) -> None:
    told = world.get()

    codes = [world.push(told), world.push(told, terminating=True)]

    assert (codes, world.known(told).terminating) == ([NONE, NONE], True)
    assert world.counts(told) == counted(export=2)
    assert [payload.terminating for payload in world.receiver.payloads] == [False, True]


def test_P8_nothing_comes_after_terminating(world: World) -> None:
    told = world.get()

    codes = [world.push(told, b"", terminating=True), world.push(told, terminating=True)]

    instance = world.known(told)
    assert codes == [NONE, INVALID_REQUEST]
    assert (instance.terminating, instance.last_known_error) == (True, INVALID_REQUEST)


def test_P8b_refused_push_that_does_not_terminate_takes_the_lock_away(world: World) -> None:
    told = world.get()

    codes = [world.push(told, terminating=terminating) for terminating in (True, False, False)]

    assert (codes, world.known(told).terminating) == ([NONE, INVALID_REQUEST, THROTTLED], False)


def test_P9_wrong_subscription_id(world: World) -> None:
    told = world.get()

    code = world.push(told, subscription_id=1234)

    instance = world.known(told)
    assert code == UNKNOWN_SUBSCRIPTION_ID
    assert (instance.terminating, instance.last_known_error) == (False, UNKNOWN_SUBSCRIPTION_ID)
    assert world.counts(told) == counted(unknown=1)
    assert world.metric("unknown-subscription-request-rate") > 0
    assert world.never_timed(told)


@pytest.mark.parametrize("codec", [100, 5, -1])
def test_P10_unknown_codec(world: World, codec: int) -> None:
    told = world.get()

    code = world.push(told, codec=codec)

    assert code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert world.known(told).last_known_error == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_P11_push_with_null_metrics(world: World) -> None:
    told = world.get()

    code = world.push(told, cast(Any, None))

    assert (code, world.receiver.payloads, world.metric("instance-count")) == (NONE, [], 1)
    assert world.counts(told) == counted()
    assert world.never_timed(told)


def test_P11b_push_without_metrics(world: World) -> None:
    told = world.get()

    code = world.push(told, b"")

    assert (code, world.receiver.payloads, world.metric("instance-count")) == (NONE, [], 1)
    assert world.counts(told) == counted()
    assert world.never_timed(told)


@pytest.mark.parametrize("policy", list(ErrorPolicy))
def test_P12_too_large_as_received(policy: ErrorPolicy) -> None:
    world = World(policy, telemetry_max_bytes=1)
    told = world.get()

    code = world.push(told, b"ab")

    instance = world.known(told)
    assert code == TOO_LARGE
    assert (instance.last_known_error, instance.terminating) == (TOO_LARGE, False)
    assert world.counts(told) == counted()


@pytest.mark.parametrize("policy", list(ErrorPolicy))
def test_P12b_exactly_as_large_as_allowed(policy: ErrorPolicy) -> None:
    world = World(policy, telemetry_max_bytes=len(DATA))
    told = world.get()

    code = world.push(told)

    assert code == NONE


def test_P13_of_two_pushes_of_an_unknown_instance_one_is_throttled(world: World) -> None:
    told = World().get()

    codes = [world.push(told) for _ in range(2)]

    assert codes == [NONE, THROTTLED]
    assert world.counts(told) == counted(export=1, throttle=1)


def test_P14_of_two_pushes_after_an_update_one_is_throttled(world: World) -> None:
    told = world.get()
    world.update("sub-1", DEFAULT_PROPERTIES)

    codes = [world.push(told) for _ in range(2)]

    assert codes == [UNKNOWN_SUBSCRIPTION_ID, THROTTLED]
    assert world.counts(told) == counted(unknown=1, throttle=1)
    assert len(world.connections) == 2


def test_P15_raising_plugin_under_kafka_policy() -> None:
    world = World(ErrorPolicy.KAFKA)
    world.plugin.remove(world.receiver)
    world.plugin.add_receiver("broken", Broken())
    world.update("sub-1", DEFAULT_PROPERTIES)
    told = world.get()

    code = world.push(told)

    instance = world.known(told)
    assert code == INVALID_RECORD
    assert (instance.last_known_error, instance.terminating) == (INVALID_RECORD, False)
    assert world.counts(told) == counted(error=1)
    assert world.metric("plugin-error-rate", told) > 0
    assert world.never_timed(told)


def test_P15_raising_plugin_under_client_safe_policy_is_no_business_of_the_client() -> None:
    world = World(ErrorPolicy.CLIENT_SAFE)
    world.plugin.add_receiver("broken", Broken())
    told = world.get()

    code = world.push(told)

    assert (code, world.known(told).last_known_error) == (NONE, NONE)
    assert world.counts(told) == counted(error=1)
    assert world.never_timed(told)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_P16_too_large_after_decompression_under_kafka_policy(codec: Codec) -> None:
    world = World(ErrorPolicy.KAFKA)
    data = otlp("m" * 200)
    told = world.get()

    code = world.push(told, compress(codec, data), codec=codec)

    assert code == TOO_LARGE
    assert world.known(told).last_known_error == TOO_LARGE
    assert world.counts(told) == counted(error=1)
    assert world.receiver.payloads == []


def test_P16_client_safe_policy_has_a_bound_of_its_own() -> None:
    world = World(ErrorPolicy.CLIENT_SAFE, max_decompressed_bytes=250)
    data = otlp("m" * 200)
    told = world.get()

    code = world.push(told, compress(Codec.ZSTD, data), codec=Codec.ZSTD)

    assert (code, [payload.data for payload in world.receiver.payloads]) == (NONE, [data])


def test_P16_too_large_after_decompression_under_client_safe_policy() -> None:
    world = World(ErrorPolicy.CLIENT_SAFE, max_decompressed_bytes=200)
    told = world.get()

    code = world.push(told, compress(Codec.ZSTD, otlp("m" * 200)), codec=Codec.ZSTD)

    assert code == TOO_LARGE
    assert world.known(told).last_known_error == TOO_LARGE
    assert world.counts(told) == counted(error=1)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_P17_corrupt_compressed_data(world: World, codec: Codec) -> None:
    told = world.get()

    code = world.push(told, b"\xff" + random.Random(17).randbytes(40), codec=codec)

    assert (code, world.receiver.payloads) == (INVALID_RECORD, [])
    assert world.known(told).last_known_error == INVALID_RECORD
    assert world.counts(told) == counted(error=1)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.NONE])
def test_P18_other_codec_than_the_preferred_one(world: World, codec: Codec) -> None:
    told = world.get()

    code = world.push(told, compress(codec, DATA), codec=codec)

    assert (code, [payload.data for payload in world.receiver.payloads]) == (NONE, [DATA])


def test_P19_terminating_push_that_is_refused_locks_the_instance(world: World) -> None:
    told = world.get()
    world.update("sub-1", DEFAULT_PROPERTIES)

    refused = world.push(told, terminating=True)

    current = world.known(told).subscription_id
    assert [refused, world.push(told, subscription_id=current)] == [UNKNOWN_SUBSCRIPTION_ID, INVALID_REQUEST]


def test_P20_wrong_subscription_id_uses_up_the_turn(world: World) -> None:
    told = world.get()

    codes = [world.push(told, subscription_id=1234), world.push(told)]

    assert codes == [UNKNOWN_SUBSCRIPTION_ID, THROTTLED]


def test_too_early_push_with_a_wrong_subscription_id_is_throttled(world: World) -> None:
    told = world.get()

    codes = [world.push(told), world.push(told, subscription_id=1234)]

    assert codes == [NONE, THROTTLED]


def test_compressed_nothing_reaches_the_plugins(world: World) -> None:
    told = world.get()

    code = world.push(told, compress(Codec.ZSTD, b""), codec=Codec.ZSTD)

    assert (code, [payload.data for payload in world.receiver.payloads]) == (NONE, [b""])


def test_large_payload_is_opened_elsewhere_and_finished_later() -> None:
    world = World(inline_bytes=50)
    data = otlp("m" * 200)
    told = world.get()

    pending = world.pending_push(told, compress(Codec.ZSTD, data), Codec.ZSTD)
    before = world.counts(told)
    answer = finished(pending, pending.work.run())

    assert (before, answer.error_code) == (counted(), NONE)
    assert world.counts(told) == counted(export=1)
    assert [payload.data for payload in world.receiver.payloads] == [data]


def test_large_payload_uses_up_its_turn_before_it_is_opened() -> None:
    world = World(inline_bytes=10)
    told = world.get()
    world.pending_push(told, DATA)

    code = world.push(told)

    assert code == THROTTLED


def test_large_payload_that_is_not_otlp_is_an_invalid_record() -> None:
    world = World(inline_bytes=5)
    told = world.get()
    pending = world.pending_push(told, b"test-data")

    answer = finished(pending, error_of(pending.work.run))

    assert answer.error_code == INVALID_RECORD
    assert world.known(told).last_known_error == INVALID_RECORD
    assert world.counts(told) == counted(error=1)


def test_large_payload_beyond_all_bounds_is_too_large() -> None:
    world = World(inline_bytes=50, max_decompressed_bytes=200_000)
    told = world.get()
    pending = world.pending_push(told, compress(Codec.ZSTD, otlp("m" * 300_000)), Codec.ZSTD)

    answer = finished(pending, error_of(pending.work.run))

    assert (answer.error_code, world.counts(told)) == (TOO_LARGE, counted(error=1))


def test_instance_may_be_gone_when_a_large_payload_is_finished() -> None:
    world = World(inline_bytes=10)
    told = world.get(connection_id="conn-1")
    pending = world.pending_push(told, DATA)
    world.manager.connection_closed("conn-1")

    answer = finished(pending, pending.work.run())

    assert (answer.error_code, world.metric_count(), len(world.receiver.payloads)) == (NONE, 3, 1)


@pytest.mark.parametrize(
    ("policy", "code"), [(ErrorPolicy.CLIENT_SAFE, THROTTLED), (ErrorPolicy.KAFKA, INVALID_RECORD)]
)
def test_worker_that_died_is_no_fault_of_the_client(policy: ErrorPolicy, code: ErrorCode) -> None:
    world = World(policy, inline_bytes=10)
    told = world.get()
    pending = world.pending_push(told, DATA)

    answer = finished(pending, EOFError("worker died"))

    assert (answer.error_code, world.counts(told)) == (code, counted(error=1))


def error_of(run: Any) -> Exception:
    """What a worker process would send back."""
    with pytest.raises(Exception, match=r".*") as raised:
        run()
    return raised.value


def finished(pending: PendingPush, outcome: bytes | BaseException) -> PushTelemetryResponse:
    """What the client hears when its payload was opened elsewhere."""
    answer = pending.finish(outcome)
    assert isinstance(answer, PushTelemetryResponse)
    return answer
