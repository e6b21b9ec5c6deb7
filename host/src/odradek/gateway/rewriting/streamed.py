"""Long responses: everything passes as it comes, except the nodes at the end."""

from __future__ import annotations

from odradek.gateway.addresses import Addresses
from odradek.gateway.rewriting.addressed_layout import AddressedLayout, first_error
from odradek.gateway.rewriting.fields import BROKEN, INT32
from odradek.gateway.rewriting.rewriter import MalformedResponse
from odradek.wire.errors import WireError
from odradek.wire.walking import Walking


class StreamedRewriter:
    """Rewrites the end of one response, which keeps its size.

    Args:
        size: The int32 length of the response.
        layout: Its version, compiled.
        addresses: The advertised addresses.
        hold_bytes: How much of the end may be held. Of what precedes it a walk holds fewer than `ATOM_BYTES`.
    """

    __slots__ = ("addresses", "hold_bytes", "layout", "size", "walking")

    def __init__(self, size: int, layout: AddressedLayout, addresses: Addresses, hold_bytes: int) -> None:
        self.size = size
        self.layout = layout
        self.addresses = addresses
        self.hold_bytes = hold_bytes
        self.walking = Walking(layout.walk(), size)

    @property
    def tail_at(self) -> int | None:
        """The position where the end begins; None before the walk has come there."""
        return None if self.walking.found is None else self.walking.wanted

    @property
    def error_code(self) -> int | None:
        """See `Rewriter`."""
        return None if self.walking.found is None else first_error(self.walking.found[1])

    @property
    def throttle_ms(self) -> int | None:
        """See `Rewriter`."""
        return None if self.walking.found is None else self.walking.found[3]

    @property
    def held_bytes(self) -> int:
        return len(self.walking.held)

    def feed(self, chunk: memoryview) -> list[bytes | memoryview]:
        """Take the next bytes of the response and return what can be sent now.

        Raises:
            MalformedResponse: The response does not parse, or its end exceeds the bound.
        """
        walking, size = self.walking, self.size
        first: list[bytes | memoryview] = [] if walking.fed else [INT32.pack(size)]
        try:
            out = first + walking.feed(chunk)
            if walking.found is not None and size - walking.wanted > self.hold_bytes:
                raise WireError(f"{size - walking.wanted} bytes follow the partitions")
            if walking.fed >= size:
                out.append(self.layout.tail(walking.held, self.addresses, keep_size=True)[0])
        except BROKEN as error:
            raise MalformedResponse(f"response of {size} bytes: {error}") from error
        return out
