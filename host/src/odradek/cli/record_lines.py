"""Lines for ``odradek produce``, parsed like kafka-console-producer.sh (LineMessageReader.java)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from odradek.cli.errors import CommandFailed
from odradek.cli.record_properties import is_true, record_properties
from odradek.wire.record import Record

READER_DEFAULTS = {
    "parse.key": "false",
    "parse.headers": "false",
    "key.separator": "\t",
    "headers.delimiter": "\t",
    "headers.separator": ",",
    "headers.key.separator": ":",
    "null.marker": "",
    "ignore.error": "false",
}


@dataclass(frozen=True, slots=True)
class LineReader:
    """Parses lines: ``headers TAB key TAB value``, the first two only if they are asked for."""

    parse_key: bool
    parse_headers: bool
    key_separator: bytes
    headers_delimiter: bytes
    headers_separator: bytes
    headers_key_separator: bytes
    null_marker: bytes
    """Stands for a null key, value or header; empty for none."""
    ignore_error: bool
    """Whether a line without a separator is a value; otherwise it is an error."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """The reader that ``--reader-property`` describes.

        Raises:
            click.UsageError: A property is not known.
        """
        found = record_properties("--reader-property", texts, READER_DEFAULTS)
        return cls(
            is_true(found["parse.key"]),
            is_true(found["parse.headers"]),
            found["key.separator"].encode(),
            found["headers.delimiter"].encode(),
            found["headers.separator"].encode(),
            found["headers.key.separator"].encode(),
            found["null.marker"].encode(),
            is_true(found["ignore.error"]),
        )

    def record(self, line: bytes, number: int, now_ms: int) -> Record:
        """Parse one line, without its end.

        Raises:
            CommandFailed: A separator is missing.
        """
        headers, rest = self.parted(
            self.parse_headers, line, line, self.headers_delimiter, "headers delimiter", number
        )
        key, value = self.parted(self.parse_key, rest, line, self.key_separator, "key separator", number)
        pairs = () if headers is None or self.is_null(headers) else tuple(self.headers(headers, number))
        return Record(
            None if key is None or self.is_null(key) else key,
            None if self.is_null(value) else value,
            now_ms,
            pairs,
        )

    def is_null(self, text: bytes) -> bool:
        return bool(self.null_marker) and text == self.null_marker

    def parted(
        self, wanted: bool, rest: bytes, line: bytes, separator: bytes, name: str, number: int
    ) -> tuple[bytes | None, bytes]:
        """The part before a separator, None if there is none or it is not wanted, and the part after it."""
        if not wanted:
            return None, rest
        part, found, after = rest.partition(separator)
        if found:
            return part, after
        if self.ignore_error:
            return None, rest
        raise CommandFailed(
            f"odradek produce: No {name} found on line number {number}: '{line.decode(errors='replace')}'"
        )

    def headers(self, text: bytes, number: int) -> Iterator[tuple[str, bytes | None]]:
        """Yield the headers of a line."""
        for pair in text.split(self.headers_separator):
            key, found, value = pair.partition(self.headers_key_separator)
            where = f"in pair '{pair.decode(errors='replace')}' on line number {number}"
            if not found and not self.ignore_error:
                raise CommandFailed(f"odradek produce: No header key separator found {where}")
            if self.is_null(key):
                raise CommandFailed(f"odradek produce: a header key is the null marker {where}")
            yield key.decode("utf-8", "surrogateescape"), value if found and not self.is_null(value) else None
