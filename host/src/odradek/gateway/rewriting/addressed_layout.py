"""One version of a response with addresses, compiled: everything up to its nodes, the nodes, and the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

from odradek.gateway.addresses import Addresses
from odradek.gateway.rewriting.fields import LENGTH_BYTES, Tags, require_end, tags_at
from odradek.gateway.rewriting.nodes import Node, NodeArray
from odradek.gateway.rewriting.rewriter import Seen
from odradek.gateway.rewriting.tails import fitted, section
from odradek.wire.errors import WireError
from odradek.wire.header import flexible_response_header
from odradek.wire.layout import layout
from odradek.wire.varint import skip_tags
from odradek.wire.walk_source import StreamedWalk, Walk, Wanted, compile_streamed_walk, compile_walk

NO_TAGS: Final = b"\0"
CORRELATION_ID_BYTES: Final = LENGTH_BYTES

See = Callable[[bytes, int, int], Seen | None]
"""Takes data, and the positions of a response's correlation id and of its end. Returns the fields that were
read if the response names no node and so passes as it is; None if it needs its rewriter."""


class ResponseApi(Protocol):
    """An API whose responses may need a rewriter."""

    def see(self, version: int) -> See | None:
        """Looks at complete responses of a version; None if all pass. See `AddressedApi`."""


@dataclass(slots=True, eq=False)
class SeenFields:
    """The `Seen` of a response without a rewriter."""

    error_code: int | None = None
    throttle_ms: int | None = None


USUAL: Final = SeenFields(0, 0)


def first_error(errors: dict[int, int] | None) -> int:
    """The first error that was counted, 0 for none."""
    return next(iter(errors)) if errors else 0


def unseen(_data: bytes, _at: int, _end: int) -> Seen | None:
    """None: each response needs its rewriter."""
    return None


def passing_of(head: Walk) -> See:
    """The `See` of responses whose nodes are in the last tagged section, which nearly always is empty."""

    def passing(data: bytes, at: int, end: int) -> Seen | None:
        try:
            tail, errors, _, throttle_ms = head(data, at + CORRELATION_ID_BYTES, end)
        except WireError:
            return None
        if tail + 1 != end or data[tail]:
            return None
        return SeenFields(first_error(errors), throttle_ms) if errors or throttle_ms else USUAL

    return passing


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The new bytes of a response, and what was read in passing."""

    frame: bytes
    """From the correlation id on."""
    upto: int
    """The end of the part of the old response that these bytes replace."""
    error_code: int
    throttle_ms: int | None


class AddressedLayout:
    """A version of a response.

    Args:
        response: The declared response.
        version: Its version.
        nodes: The name of the array with nodes. In versions without it the response itself names one node.
    """

    def __init__(self, response: type[Any], version: int, nodes: str) -> None:
        shape = layout(response, version)
        title = f"{response.__name__} v{version}"
        field = next((each for each in shape if each.name == nodes), None)
        self.shape = shape
        self.title = title
        self.header = flexible_response_header(response, version)
        self.to_nodes = Wanted(
            "error_code", ("throttle_time_ms",), header=self.header, before=nodes, tags=False
        )
        self.tag = None if field is None else field.tag
        self.node = Node(shape, title) if field is None else None
        self.passing: See = unseen
        """Looks at complete responses."""
        if field is not None:
            self.array = NodeArray(field.kind, shape.flexible, f"{title} {nodes}")
            self.head = compile_walk(shape, self.to_nodes, title)
            self.passing = unseen if self.tag is None else passing_of(self.head)
            self.rest = compile_walk(shape, Wanted(after=nodes, tags=False), f"{title} rest")

    @cached_property
    def streamed(self) -> Any:
        """Starts a streamed walk to the nodes."""
        return compile_streamed_walk(self.shape, self.to_nodes, self.title)

    def walk(self) -> StreamedWalk:
        """A streamed walk from the correlation id's end to the nodes."""
        walk: StreamedWalk = self.streamed(CORRELATION_ID_BYTES)
        return walk

    def rewritten(self, frame: bytes, addresses: Addresses) -> Rewritten:
        """Rewrite a complete response.

        Raises:
            WireError, IndexError, UnicodeDecodeError: It does not parse.
        """
        end = len(frame)
        if self.node is not None:
            start = skip_tags(frame, CORRELATION_ID_BYTES) if self.header else CORRELATION_ID_BYTES
            node, found = self.node.rewritten(frame, start, end, addresses)
            require_end(frame, found[0])
            return Rewritten(frame[:start] + (node or b""), end, first_error(found[1]), found[-1])
        at, errors, _, throttle_ms = self.head(frame, CORRELATION_ID_BYTES, end)
        tail, more = self.tail(frame[at:], addresses, keep_size=False)
        return Rewritten(frame[:at] + tail, end, first_error(errors or more), throttle_ms)

    def beginning(self, frame: bytes, addresses: Addresses) -> Rewritten:
        """Rewrite a response up to the end of its nodes; what follows passes as it is.

        Raises:
            Truncated, IndexError: The nodes are not complete.
            WireError, UnicodeDecodeError: They do not parse.
        """
        at, errors, _, throttle_ms = self.head(frame, CORRELATION_ID_BYTES, len(frame))
        nodes, end, more = self.array.rewritten(frame, at, len(frame), addresses)
        return Rewritten(frame[:at] + nodes, end, first_error(errors or more), throttle_ms)

    def tail(self, tail: bytes, addresses: Addresses, keep_size: bool) -> tuple[bytes, dict[int, int]]:
        """Rewrite what `head` or `walk` have not passed. Returns it with the errors in it.

        Args:
            tail: The rest of the response.
            addresses: The advertised addresses.
            keep_size: The new bytes must be as many as the old ones.

        Raises:
            WireError, IndexError, UnicodeDecodeError: It does not parse.
        """
        if self.tag is not None:
            return self.tagged(tail, addresses, keep_size), {}
        nodes, at, errors = self.array.rewritten(tail, 0, len(tail), addresses)
        (end, _) = self.rest(tail, at, len(tail))
        between, tags = tail[at:end], Tags()
        if self.shape.flexible:
            tags, end = tags_at(tail, end)
        require_end(tail, end)
        if keep_size:
            choices = (nodes + between, tags), (self.array.count(0) + between, tags)
            return fitted(*choices, size=len(tail)), errors
        return nodes + between + (section(tags) if self.shape.flexible else b""), errors

    def tagged(self, tail: bytes, addresses: Addresses, keep_size: bool) -> bytes:
        """`tail` if the nodes are in the tagged section at the end."""
        if tail == NO_TAGS:
            return tail
        tags, end = tags_at(tail, 0)
        require_end(tail, end)
        contents = dict(tags)
        if self.tag is None or self.tag not in contents:
            return tail
        old = contents[self.tag]
        content, end, _ = self.array.rewritten(old, 0, len(old), addresses)
        require_end(old, end)
        others: Tags = [tag for tag in tags if tag[0] != self.tag]
        changed = others if content == self.array.count(0) else sorted([*others, (self.tag, content)])
        return fitted((b"", changed), (b"", others), size=len(tail)) if keep_size else section(changed)
