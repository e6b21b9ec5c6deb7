from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from odradek.cli.errors import CommandFailed
from odradek.cli.produce import Router, pieces
from odradek.cli.record_lines import LineReader
from odradek.client.partitioner import partition_of
from odradek.wire.record import Record


class Arriving(io.BytesIO):
    """A pipe whose writer sends these pieces."""

    def __init__(self, *arriving: bytes) -> None:
        super().__init__()
        self.arriving: Iterator[bytes] = iter((*arriving, b""))

    def read1(self, size: int | None = -1, /) -> bytes:
        return next(self.arriving)


def test_lines_are_yielded_as_soon_as_they_are_complete() -> None:
    source = Arriving(b"a\nb", b"c\r\n", b"d")

    assert list(pieces(source, 100, prompt=False, one_by_one=False)) == [[b"a"], [b"bc"], [b"d"]]


def test_lines_can_be_yielded_one_by_one() -> None:
    source = Arriving(b"a\nb\n")

    assert list(pieces(source, 100, prompt=False, one_by_one=True)) == [[b"a"], [b"b"]]


def test_a_terminal_gets_a_prompt_for_each_piece(capsys: pytest.CaptureFixture[str]) -> None:
    list(pieces(Arriving(b"a\n", b"b\n"), 100, prompt=True, one_by_one=False))

    assert capsys.readouterr().out == ">>>"


def test_records_without_a_key_take_turns_and_others_follow_their_key() -> None:
    router = Router("t", 3)
    first = router.partition(None, None)
    router.turn()

    assert router.partition(None, None) == ("t", (first[1] + 1) % 3)
    assert router.partition(b"k", None) == ("t", partition_of(b"k", 3))
    assert router.partition(b"k", 7) == ("t", 7)


def test_ignored_errors_make_values_and_headers_without_values() -> None:
    reader = LineReader.of(
        ["parse.key=true", "parse.headers=true", "ignore.error=true", "headers.delimiter=|"]
    )

    assert reader.record(b"plain", 1, 9) == Record(None, b"plain", 9)
    assert reader.record(b"h|v", 1, 9) == Record(None, b"v", 9, (("h", None),))


def test_a_header_key_cannot_be_null() -> None:
    reader = LineReader.of(["parse.headers=true", "null.marker=NULL"])

    with pytest.raises(CommandFailed, match="null marker in pair 'NULL:v' on line number 3"):
        reader.record(b"NULL:v\tvalue", 3, 0)
