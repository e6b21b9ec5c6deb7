"""Recordings of real senders of OTLP: one file per sender, one line per request.

``contrib/capture/otlp_senders.py`` writes them, with the body as it was sent.
"""

from __future__ import annotations

import json
from base64 import b64decode
from functools import cache
from typing import Any, Final

from odradek.otlp import Sender, otlp_records
from odradek.testing.pushes.recording import MAX_BYTES, SUFFIX, RecordedPush, folder, refuse_unknown
from odradek.wire.compression import Codec, decompress

INTERVAL_MS: Final = 60_000
"""Stands for the push interval, as by default in the source of ``odradek-otlp``."""


def otlp_senders() -> list[str]:
    """The names of the recorded senders, sorted."""
    files = (folder() / "otlp").iterdir()
    return sorted(each.name.removesuffix(SUFFIX) for each in files if each.name.endswith(SUFFIX))


def recorded_otlp(sender: str | None = None) -> list[RecordedPush]:
    """The pushes of a sender of OTLP/HTTP, in their order; None for those of all senders.

    Each has the record that the source of ``odradek-otlp`` makes of the request, before the host labels it.

    Raises:
        ValueError: There is no recording of this sender.
    """
    senders = otlp_senders()
    if sender is None:
        return [push for each in senders for push in recorded_otlp(each)]
    refuse_unknown(sender, senders)
    return [pushed(sender, row) for row in rows(sender)]


@cache
def rows(sender: str) -> list[dict[str, Any]]:
    text = (folder() / "otlp" / f"{sender}{SUFFIX}").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def pushed(sender: str, row: dict[str, Any]) -> RecordedPush:
    """One request. Its Resources are of one program, so it is one record."""
    sent = b64decode(row["body"])
    codec = Codec.GZIP if row["encoding"] == "gzip" else Codec.NONE
    connection = Sender(
        address="127.0.0.1", port=50_000, principal="User:ANONYMOUS", security_protocol="PLAINTEXT"
    )
    data = decompress(codec, sent, MAX_BYTES)
    (record,) = otlp_records(data, connection, row["received_ms"], INTERVAL_MS, "otlp")
    return RecordedPush(client=sender, record=record, sent=sent)
