"""Scenarios of batches that no client makes: bytes after a batch, the bit of log append time, other acks."""

from __future__ import annotations

import struct

from contrib.capture.golden import Recorder, Scenario
from contrib.capture.record_scenarios import batch, patched, put, send
from contrib.capture.topic_scenarios import DYNAMIC_IDS, create, delete_all, new


def odd(say: Recorder) -> None:
    say.note(DYNAMIC_IDS)
    create(say, "topics", new("plain", 1), new("stamped", 1, message_timestamp_type="LogAppendTime"))
    plain, good = ("plain", b""), batch(b"a", b"b")
    stamped = patched(good, 21, struct.pack(">h", 8))
    send(say, "a batch with the bit of log append time", plain, stamped, version=11)
    send(say, "the same to a topic with log append time", ("stamped", b""), stamped, version=11)
    without = patched(batch(b"a", timestamp_ms=-1), 21, struct.pack(">h", 8))
    send(say, "the same without a timestamp", plain, without, version=11)
    for label, tail in (
        ("a byte", b"\0"),
        ("11 bytes", b"\xff" * 11),
        ("a length of 13", struct.pack(">qi", 0, 13)),
        ("a length of 14", struct.pack(">qi", 0, 14)),
        ("a header of magic 9", struct.pack(">qiib", 0, 1000, 0, 9)),
        ("a header of magic 2", struct.pack(">qiib", 0, 1000, 0, 2)),
        ("the smallest batch", struct.pack(">qiib", 0, 14, 0, 2) + bytes(9)),
        ("a batch of magic 1", struct.pack(">qiib", 0, 14, 0, 1) + bytes(9)),
    ):
        send(say, f"a batch and {label}", plain, good + tail, version=11)
        send(say, f"{label} alone", plain, tail, version=11)
    for version in (3, 11):
        for label, records in (
            ("a batch", good),
            ("no bytes", b""),
            ("a wrong CRC", put(good, len(good) - 1, 0x7F)),
            ("a batch and a byte", good + b"\0"),
            ("two batches", good + good),
        ):
            send(say, f"{label}, acks 2", plain, records, version=version, acks=2)
        send(say, "an unknown topic, acks 2", ("nope", b""), good, version=version, acks=2)
        send(say, "an unknown partition, acks 2", plain, good, partition=9, version=version, acks=2)
    delete_all(say, "plain", "stamped")


SCENARIOS: dict[str, tuple[str, Scenario]] = {
    "produce_v11_odd": ("bytes after a batch, the bit of log append time, acks 2", odd),
}
