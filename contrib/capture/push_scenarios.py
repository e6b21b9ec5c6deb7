"""Scenarios of PushTelemetry."""

from __future__ import annotations

import gzip
import struct

from contrib.capture.get_scenarios import INSTANCE, NIL, RESERVED, get_again, joined
from contrib.capture.golden import Recorder, Scenario
from contrib.capture.kafka_node import TELEMETRY_MAX_BYTES
from contrib.capture.kafka_requests import Request, alter, get_subscriptions, push, setting, uvarint

OTLP = bytes.fromhex("0a00")
"""A MetricsData with one empty ResourceMetrics."""
GZIP, SNAPPY, LZ4, ZSTD = range(1, 5)


def zstd_raw(data: bytes) -> bytes:
    """A zstd frame with one raw block; ``data`` is shorter than 256 bytes."""
    block = struct.pack("<I", len(data) << 3 | 1)[:3]
    return bytes.fromhex("28b52ffd20") + bytes([len(data)]) + block + data


def padded_otlp(count: int) -> bytes:
    """A MetricsData of ``count`` bytes: one field that no reader knows. From 131 to 16386."""
    return b"\x7a" + uvarint(count - 3) + bytes(count - 3)


def zstd_padded_otlp(count: int) -> bytes:
    """The same as a zstd frame: a raw block, a run-length block, and the true size in the header."""
    head = padded_otlp(count)[:3]
    raw = struct.pack("<I", len(head) << 3)[:3] + head
    run = struct.pack("<I", (count - len(head)) << 3 | 1 << 1 | 1)[:3] + b"\0"
    return bytes.fromhex("28b52ffd60") + struct.pack("<H", count - 256) + raw + run


def snappy_raw(data: bytes) -> bytes:
    """A snappy block of one literal; ``data`` is shorter than 60 bytes."""
    return bytes([len(data), (len(data) - 1) << 2]) + data


def snappy_xerial(data: bytes) -> bytes:
    block = snappy_raw(data)
    return b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, len(block)) + block


def push_nil_id(say: Recorder) -> None:
    say.ask("nil id", push(NIL, 0, OTLP))
    say.ask("reserved id 0:1", push(RESERVED, 0, OTLP))


def push_accepted(say: Recorder) -> None:
    known = joined(say)
    say.ask("push directly after the handshake", push(INSTANCE, known, OTLP))
    say.ask("push at once", push(INSTANCE, known, OTLP))
    get_again(say)


def push_without_handshake(say: Recorder) -> None:
    say.note("857069310 is the subscription id of this instance when nothing is subscribed")
    say.ask("first request ever of this instance", push(INSTANCE, 857069310, OTLP))
    get_again(say)


def push_unknown_subscription(say: Recorder) -> None:
    known = joined(say)
    say.ask("wrong subscription id", push(INSTANCE, 1234, OTLP))
    say.ask("get at once", get_subscriptions(INSTANCE))
    say.ask("push after it", push(INSTANCE, known, OTLP))


def push_unknown_subscription_slot(say: Recorder) -> None:
    known = joined(say)
    say.ask("wrong subscription id", push(INSTANCE, 1234, OTLP))
    say.ask("right subscription id at once", push(INSTANCE, known, OTLP))
    get_again(say)


def push_bad_codec(say: Recorder) -> None:
    known = joined(say)
    say.ask("compression type 100", push(INSTANCE, known, OTLP, codec=100))
    get_again(say)


def push_negative_codec(say: Recorder) -> None:
    say.ask("compression type -1", push(INSTANCE, joined(say), OTLP, codec=-1))


def push_bad_codec_and_size(say: Recorder) -> None:
    """Which of two faults is named?"""
    say.ask(
        "type 100, one byte too many", push(INSTANCE, joined(say), bytes(TELEMETRY_MAX_BYTES + 1), codec=100)
    )


def push_too_large(say: Recorder) -> None:
    say.ask("telemetry.max.bytes + 1", push(INSTANCE, joined(say), padded_otlp(TELEMETRY_MAX_BYTES + 1)))
    get_again(say)


def push_just_fits(say: Recorder) -> None:
    say.ask("telemetry.max.bytes", push(INSTANCE, joined(say), padded_otlp(TELEMETRY_MAX_BYTES)))


def push_terminating(say: Recorder) -> None:
    known = joined(say)
    say.ask("push", push(INSTANCE, known, OTLP))
    say.ask("terminating, inside the interval", push(INSTANCE, known, OTLP, terminating=True))
    say.ask("terminating again", push(INSTANCE, known, OTLP, terminating=True))
    say.ask("not terminating", push(INSTANCE, known, OTLP))
    say.ask("not terminating", push(INSTANCE, known, OTLP))
    get_again(say)


def push_terminating_stale(say: Recorder) -> None:
    known = joined(say)
    say.ask("a new subscription", alter(1, setting("sub-1", metrics="*")))
    say.ask("terminating with the stale id", push(INSTANCE, known, OTLP, terminating=True))
    say.ask("terminating with the id of the new one", push(INSTANCE, -611876349, OTLP, terminating=True))
    get_again(say)


def push_terminating_only(say: Recorder) -> None:
    known = joined(say)
    say.ask("terminating, no metrics", push(INSTANCE, known, terminating=True))
    say.ask("get at once", get_subscriptions(INSTANCE))
    say.ask("a new subscription revives the instance", alter(1, setting("sub-1", metrics="*")))
    joined(say)
    say.ask("push", push(INSTANCE, -611876349, OTLP))


def push_empty(say: Recorder) -> None:
    known = joined(say)
    say.ask("zero bytes", push(INSTANCE, known))
    say.ask("zero bytes at once", push(INSTANCE, known))


def push_empty_zstd(say: Recorder) -> None:
    say.ask("zero bytes that claim to be zstd", push(INSTANCE, joined(say), codec=ZSTD))


def push_null(say: Recorder) -> None:
    known = joined(say)
    request = push(INSTANCE, known)
    say.ask("metrics is null on the wire", Request(72, 0, request.body[:-2] + b"\0\0"))


def push_garbage(say: Recorder) -> None:
    say.ask("uncompressed bytes that are not protobuf", push(INSTANCE, joined(say), b"\xff" * 32))


def compressed(codec: int, data: bytes) -> Scenario:
    def scenario(say: Recorder) -> None:
        say.ask(f"compression type {codec}", push(INSTANCE, joined(say), data, codec=codec))
        get_again(say)

    return scenario


FRAME = zstd_raw(OTLP)
SCENARIOS: dict[str, tuple[str, Scenario]] = {
    "push_telemetry_v0_nil_id": ("ids that may not push", push_nil_id),
    "push_telemetry_v0_accepted": ("two pushes and a handshake in a row", push_accepted),
    "push_telemetry_v0_without_handshake": (
        "a push by an instance the broker has not seen",
        push_without_handshake,
    ),
    "push_telemetry_v0_unknown_subscription": (
        "wrong subscription id, then handshake",
        push_unknown_subscription,
    ),
    "push_telemetry_v0_unknown_subscription_slot": (
        "wrong subscription id uses the turn up",
        push_unknown_subscription_slot,
    ),
    "push_telemetry_v0_bad_codec": ("unknown compression, then handshake", push_bad_codec),
    "push_telemetry_v0_negative_codec": ("compression type below zero", push_negative_codec),
    "push_telemetry_v0_bad_codec_and_size": ("two faults at once", push_bad_codec_and_size),
    "push_telemetry_v0_too_large": ("one byte too many, then handshake", push_too_large),
    "push_telemetry_v0_just_fits": ("as many bytes as allowed", push_just_fits),
    "push_telemetry_v0_terminating": ("terminating twice, then not", push_terminating),
    "push_telemetry_v0_terminating_stale": ("a last push that missed a change", push_terminating_stale),
    "push_telemetry_v0_terminating_only": ("a last push, a handshake, a change", push_terminating_only),
    "push_telemetry_v0_empty": ("no metrics", push_empty),
    "push_telemetry_v0_empty_zstd": ("no metrics, compressed", push_empty_zstd),
    "push_telemetry_v0_null": ("a null where none is allowed", push_null),
    "push_telemetry_v0_garbage": ("the broker does not read protobuf", push_garbage),
    "push_telemetry_v0_zstd": ("a good zstd frame", compressed(ZSTD, FRAME)),
    "push_telemetry_v0_gzip": ("a good gzip stream", compressed(GZIP, gzip.compress(OTLP, mtime=0))),
    "push_telemetry_v0_snappy_raw": (
        "a snappy block without xerial framing",
        compressed(SNAPPY, snappy_raw(OTLP)),
    ),
    "push_telemetry_v0_snappy_xerial": (
        "snappy with xerial framing",
        compressed(SNAPPY, snappy_xerial(OTLP)),
    ),
    "push_telemetry_v0_corrupt_zstd": ("bytes that are not zstd", compressed(ZSTD, b"test-data-not-zstd")),
    "push_telemetry_v0_corrupt_gzip": ("bytes that are not gzip", compressed(GZIP, b"test-data-not-gzip")),
    "push_telemetry_v0_corrupt_snappy": ("bytes that are not snappy", compressed(SNAPPY, b"\xff" * 20)),
    "push_telemetry_v0_corrupt_lz4": (
        "bytes that are not an LZ4 frame",
        compressed(LZ4, b"test-data-not-lz4!"),
    ),
    "push_telemetry_v0_cut_zstd": (
        "a zstd frame without its end",
        compressed(ZSTD, zstd_raw(OTLP * 20)[:-8]),
    ),
    "push_telemetry_v0_trailing_zstd": ("garbage after a zstd frame", compressed(ZSTD, FRAME + b"garbage")),
    "push_telemetry_v0_two_zstd_frames": ("two zstd frames in a row", compressed(ZSTD, FRAME + FRAME)),
    "push_telemetry_v0_expanded_zstd": (
        "small on the wire, too large inside",
        compressed(ZSTD, zstd_padded_otlp(8192)),
    ),
    "push_telemetry_v0_expanded_gzip": (
        "small on the wire, too large inside",
        compressed(GZIP, gzip.compress(padded_otlp(8192), mtime=0)),
    ),
    "push_telemetry_v0_expanded_just_fits": (
        "as large inside as allowed",
        compressed(ZSTD, zstd_padded_otlp(TELEMETRY_MAX_BYTES)),
    ),
}
WITHOUT_RECEIVER: dict[str, tuple[str, Scenario]] = {
    "push_telemetry_v0_without_receiver": ("the telemetry APIs are hidden and work", push_accepted),
}
