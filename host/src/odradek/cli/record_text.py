"""Records as ``odradek consume`` prints them: the format of DefaultMessageFormatter.java."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Self

from odradek.cli.record_properties import is_true, record_properties
from odradek.client.fetch import Received
from odradek.wire.record import NO_TIMESTAMP
from odradek.wire.record_batch import TimestampType

FORMATTER_DEFAULTS = {
    "print.timestamp": "false",
    "print.partition": "false",
    "print.offset": "false",
    "print.epoch": "false",
    "print.headers": "false",
    "print.key": "false",
    "print.value": "true",
    "key.separator": "\t",
    "line.separator": "\n",
    "headers.separator": ",",
    "null.literal": "null",
}
TIMESTAMPS = {TimestampType.CREATE_TIME: b"CreateTime", TimestampType.LOG_APPEND_TIME: b"LogAppendTime"}


class RecordText:
    """Formats records for people. Keys and values are printed as they are.

    Args:
        properties: `FORMATTER_DEFAULTS` with the changes of the command line.
    """

    def __init__(self, properties: dict[str, str]) -> None:
        self.printed = {
            key for key, value in properties.items() if key.startswith("print.") and is_true(value)
        }
        self.key_separator, self.line_separator, self.headers_separator, self.null = (
            properties[key].encode()
            for key in ("key.separator", "line.separator", "headers.separator", "null.literal")
        )

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """The format that ``--formatter-property`` describes.

        Raises:
            click.UsageError: A property is not known.
        """
        return cls(record_properties("--formatter-property", texts, FORMATTER_DEFAULTS))

    def line(self, received: Received) -> bytes:
        """One record with the separator of lines."""
        return self.key_separator.join(self.fields(received)) + self.line_separator

    def fields(self, received: Received) -> Iterator[bytes]:
        """Yield the fields to print, in the tool's order."""
        record, batch = received.record, received.batch
        if "print.timestamp" in self.printed:
            known = record.timestamp_ms != NO_TIMESTAMP
            yield (
                b"%s:%d" % (TIMESTAMPS[batch.timestamp_type], record.timestamp_ms)
                if known
                else b"NO_TIMESTAMP"
            )
        if "print.partition" in self.printed:
            yield b"Partition:%d" % received.partition[1]
        if "print.offset" in self.printed:
            yield b"Offset:%d" % record.offset
        if "print.epoch" in self.printed:
            epoch = batch.partition_leader_epoch
            yield b"Epoch:%d" % epoch if epoch >= 0 else b"Epoch:NOT_PRESENT"
        if "print.headers" in self.printed:
            pairs = (
                name.encode("utf-8", "surrogateescape") + b":" + self.bytes_of(value)
                for name, value in record.headers
            )
            yield self.headers_separator.join(pairs) if record.headers else b"NO_HEADERS"
        if "print.key" in self.printed:
            yield self.bytes_of(record.key)
        if "print.value" in self.printed:
            yield self.bytes_of(record.value)

    def bytes_of(self, value: bytes | None) -> bytes:
        """A key or value, or the text for null."""
        return self.null if value is None else value
