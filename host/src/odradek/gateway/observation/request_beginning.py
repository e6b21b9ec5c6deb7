"""The first fields of a request, of which only the beginning may have arrived."""

from __future__ import annotations

from functools import cache
from typing import Any

from odradek.gateway.request_heads import after_tags, client_id_end
from odradek.gateway.rewriting.fields import LENGTH_BYTES, text_start
from odradek.wire.layout import layout
from odradek.wire.types import Blob
from odradek.wire.utf8 import LENIENT
from odradek.wire.walk_source import Walk, Wanted, compile_walk


@cache
def beginning_walk(
    request: type[Any], version: int, reads: tuple[str, ...], before: str
) -> tuple[Walk, frozenset[str]]:
    """A walk to the last of some fields, or to the one before which it stops; and the names of strings.

    Raises:
        WireError: The request has no such version.
    """
    shape = layout(request, version)
    texts = frozenset(field.name for field in shape.fields if field.kind is Blob.STRING)
    last = [field.name for field in shape.fields if field.name in reads][-1]
    wanted = Wanted(reads=reads, before=before, last=last)
    return compile_walk(shape, wanted, f"{request.__name__} v{version} beginning"), texts


def body_at(request: type[Any], version: int, head: bytes, at: int) -> int:
    """The position where the body of a request begins, from the position of its API key."""
    start = client_id_end(head, at - LENGTH_BYTES)
    return after_tags(head, start) if version in request.FLEXIBLE else start


def beginning(
    request: type[Any], version: int, head: bytes, at: int, reads: tuple[str, ...], before: str = ""
) -> tuple[int, list[Any]]:
    """Read numbers and strings at the beginning of a request.

    Returns:
        The position after the part that was walked over, and the values: "" for null, None for a field that
        the version does not have.

    Raises:
        WireError: The bytes are malformed, or end too early.
    """
    walk, texts = beginning_walk(request, version, reads, before)  # type: ignore[arg-type]  # mypy doubts that classes are hashable
    end, _, *found = walk(head, body_at(request, version, head, at), len(head))
    values = found[1::2]
    for number, (name, place) in enumerate(zip(reads, found[::2], strict=True)):
        if place is not None and name in texts:
            start = text_start(head, place, version in request.FLEXIBLE)
            values[number] = head[start : values[number]].decode("utf-8", LENIENT)
    return end, values
