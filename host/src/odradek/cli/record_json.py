"""Records as JSON objects, which ``odradek consume --json`` prints and ``odradek produce --json`` reads.

Bytes that are UTF-8 are a string, others ``{"base64": "..."}``.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from odradek.cli.errors import CommandFailed
from odradek.client.fetch import Received
from odradek.wire.record import Record
from odradek.wire.record_batch import TimestampType

TIMESTAMP_TYPES = {TimestampType.CREATE_TIME: "CreateTime", TimestampType.LOG_APPEND_TIME: "LogAppendTime"}
BASE64 = "base64"


def record_object(received: Received) -> dict[str, Any]:
    """A record as a JSON object."""
    (topic, index), batch, record = received
    return {
        "topic": topic,
        "partition": index,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "timestamp_type": TIMESTAMP_TYPES[batch.timestamp_type],
        "leader_epoch": batch.partition_leader_epoch,
        "headers": [{"key": name, "value": bytes_json(value)} for name, value in record.headers],
        "key": bytes_json(record.key),
        "value": bytes_json(record.value),
    }


def bytes_json(value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {BASE64: base64.b64encode(value).decode()}


def parse_record(line: bytes, number: int, now_ms: int) -> tuple[int | None, Record]:
    """The record of a JSON object, and the partition that it names, if any.

    Raises:
        CommandFailed: The line has another form.
    """
    try:
        row = json.loads(line)
        headers = tuple(
            (str(each["key"]), json_bytes(each.get("value"))) for each in row.get("headers") or ()
        )
        record = Record(
            json_bytes(row.get("key")),
            json_bytes(row.get("value")),
            int(row.get("timestamp_ms", now_ms)),
            headers,
        )
        partition = row.get("partition")
        return None if partition is None else int(partition), record
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        problem = (
            f"{type(error).__name__}: {error}" if isinstance(error, KeyError | AttributeError) else error
        )
        raise CommandFailed(
            f"odradek produce: line number {number} is not a record of odradek consume --json: {problem}"
        ) from error


def json_bytes(value: Any) -> bytes | None:
    """The bytes of a JSON value; another value than null, a string or base64 is stored as JSON."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and value.keys() == {BASE64}:
        return base64.b64decode(value[BASE64], validate=True)
    return json.dumps(value, separators=(",", ":")).encode()
