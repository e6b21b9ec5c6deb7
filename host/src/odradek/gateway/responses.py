"""The responses of one pair: from the broker to the client, with the gateway's own answers in their places.

A response belongs to the oldest request that waits for one. Most responses pass as they come and are only
counted. Those that name addresses or API versions pass a rewriter.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from odradek.gateway.observed_response import UNREAD, ObservedResponse
from odradek.gateway.pair_failure import Cause, PairFailure
from odradek.gateway.pair_state import (
    LARGE_FRAME_BYTES,
    RAW_TOKEN,
    SMALLEST,
    Burst,
    PairState,
    Pause,
    unexpected,
)
from odradek.gateway.path_meter import HELD
from odradek.gateway.request_heads import unpack_int32
from odradek.gateway.rewriting.addressed_layout import USUAL, ResponseApi
from odradek.gateway.rewriting.api_versions import rewrite_api_versions
from odradek.gateway.rewriting.catalog import ADDRESSED, rewriter_for
from odradek.gateway.rewriting.rewriter import Rewriter, Seen
from odradek.gateway.whole_requests import response_body
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from odradek.wire.messages.sasl_handshake import SaslHandshakeResponse

HEAD: Final = 8
"""Length and correlation id."""
HANDSHAKE, API_VERSIONS, AUTHENTICATE = 17, 18, 36

unpack_head: Callable[..., tuple[int, int]] = struct.Struct(">ii").unpack_from
pack_length = struct.Struct(">i").pack


class Responses:
    """The direction from the broker to the client."""

    __slots__ = (
        "held_since_ns", "is_blocked", "is_counted", "key", "needed", "now_ns", "observed", "out", "partial",
        "rest", "rewriter", "state", "taken",
    )  # fmt: skip

    WHOLE: ClassVar[Mapping[int, Callable[[Responses, bytes, int], bytes | None]]]
    ADDRESSED: ClassVar[Mapping[int, ResponseApi]] = ADDRESSED
    """The APIs whose responses may need a rewriter."""

    def __init__(self, state: PairState) -> None:
        self.state = state
        self.rest = 0
        """Bytes of the current response that are still to come."""
        self.rewriter: Rewriter | None = None
        """Takes the rest; None if it passes."""
        self.partial: bytearray | None = None
        """The start of a response that is held back."""
        self.needed = HEAD
        """How many bytes `partial` must have before they are looked at again."""
        self.is_blocked = False
        """`partial` waits until a local answer is ready."""
        self.held_since_ns = 0
        self.is_counted = False
        """The memory that is held was told to the end."""
        self.out: list[bytes | memoryview] = []
        """Pieces for the client that are sent at the end of the chunk."""
        self.taken = 0
        """How much of the current chunk is in `out`."""
        self.key = -1
        """The API key of the last response that was rewritten."""
        self.now_ns = 0
        self.observed: ObservedResponse | None = None
        """The current response, if it is observed and not complete."""

    def feed(self, data: bytes) -> None:
        """Take bytes of the broker.

        Raises:
            PairFailure: The pair must close.
            MalformedResponse: The same, because a response cannot be rewritten.
        """
        if self.partial is not None:
            completed = self.completed(data)
            if completed is None:
                return
            data = completed
        rest, end = self.rest, len(data)
        if rest > end and self.rewriter is None and (self.observed is None or not self.observed.missing):
            self.rest = rest - end
            self.state.client.write(data)
            return
        self.taken = 0
        self.now_ns = self.state.path.monotonic_ns()
        pos = self.go_on(data, end) if rest else 0
        if not self.rest:
            pos = self.walk(data, pos, end)
        if pos < end:
            self.partial = bytearray(data[pos:])
        if not self.out and not self.taken and pos >= end:
            self.state.client.write(data)
        else:
            self.pass_to(data, pos)
            self.flush()
            self.count_held()
        state = self.state
        if state.paused and len(state.outstanding) <= state.path.limits.most_in_flight // 2:
            state.paused = False
            state.client.release(Pause.IN_FLIGHT)

    def completed(self, data: bytes) -> bytes | None:
        """Add bytes to those that are held back, and return all; None if they are still held back."""
        assert self.partial is not None
        held = self.partial
        held += data
        if self.is_blocked or len(held) < self.needed:
            self.count_held()
            return None
        self.partial = None
        self.count_held()
        return bytes(held)

    def count_held(self) -> None:
        """Count what is held of a response that is incomplete, or waits."""
        held = missing = 0
        if self.partial is not None:
            held = len(self.partial)
            missing = max(self.needed - held, 0)
        elif self.rewriter is not None:
            held, missing = self.rewriter.held_bytes, self.rest
        is_large = held >= LARGE_FRAME_BYTES
        if is_large or self.is_counted:
            if not self.is_counted:
                self.held_since_ns = self.now_ns
            elif not is_large:
                self.time_held()
            self.is_counted = is_large
            self.state.upstream.holds(held if is_large else 0, missing if is_large else 0)

    def time_held(self) -> None:
        """Note how long the bytes that leave now were held back."""
        held_ns = self.state.path.monotonic_ns() - self.held_since_ns
        self.state.path.meter.added[HELD].add(held_ns / 1e9)

    def walk(self, data: bytes, pos: int, end: int) -> int:  # noqa: C901  each chunk passes
        """Find the responses of a chunk and treat each as its request demands.

        Returns:
            The offset of the first byte that is held back, or the end of the chunk.
        """
        outstanding = self.state.outstanding
        self.needed = 0
        while True:
            if outstanding and outstanding[0][1][3] is not None:
                pos = self.aligned(data, pos, end)
                if self.needed:
                    return pos
            if pos + HEAD > end:
                self.needed = HEAD
                return pos
            size, correlation_id = unpack_head(data, pos)
            if size < SMALLEST or not outstanding or outstanding[0][0] != correlation_id:
                self.pass_to(data, pos)
                raise unexpected(size, correlation_id, outstanding[0] if outstanding else None)
            burst = outstanding[0][1]
            if burst[0] not in self.WHOLE:
                pos = self.take_burst(burst, size, data, pos, end)
                if self.rest:
                    return end
            elif self.whole(data, pos, size):
                pos += 4 + size
            else:
                return pos

    def take_burst(  # noqa: C901  straight-line: it runs for every response
        self, burst: Burst, size: int, data: bytes, pos: int, end: int
    ) -> int:
        """Treat the responses to requests that arrived together, the first of `size` bytes, as one count.

        Returns:
            The offset after the last response that is complete. If another one has begun, `rest` is not 0.
        """
        outstanding, observer = self.state.outstanding, self.state.observer
        key, version, sent_ns, _ = burst
        api = self.ADDRESSED.get(key)
        see = None if api is None else api.see(version)
        seen: Seen = UNREAD
        start, count = pos, 0
        try:
            while True:
                outstanding.popleft()
                after, rewriter = pos + 4 + size, None
                if see is not None:
                    found = see(data, pos + 4, after) if after <= end else None
                    rewriter = self.rewrite(burst, data, pos, size) if found is None else None
                    seen = found or rewriter or UNREAD
                if after > end:
                    self.rest, self.rewriter = after - end, rewriter
                    if observer is not None:
                        self.observed = ObservedResponse(burst, size, data, pos + 4)
                    break
                if observer is not None and seen is not USUAL:
                    observer.outcome(key, version, size, data, pos + 4, seen.error_code, seen.throttle_ms)
                count += 1
                pos = after
                if pos + HEAD > end or not outstanding or outstanding[0][1] is not burst:
                    break
                size, correlation_id = unpack_head(data, pos)
                if outstanding[0][0] != correlation_id or size < SMALLEST:
                    break
        finally:
            if count and observer is not None:
                observer.responses(key, count, pos - start, self.now_ns - sent_ns)
        return pos

    def aligned(self, data: bytes, pos: int, end: int) -> int:
        """Send local answers whose turn has come, and pass SASL tokens without headers.

        Returns:
            The offset of the next response. `needed` is not 0 if it is held back.
        """
        outstanding = self.state.outstanding
        self.needed = 0
        while outstanding and outstanding[0][1][3] is not None and not self.needed:
            pos = self.local(data, pos, end)
        return pos

    def go_on(self, data: bytes, end: int) -> int:
        """Take the rest of the current response. Returns the offset after it."""
        size = min(self.rest, end)
        rewriter = self.rewriter
        if rewriter is not None:
            self.out += rewriter.feed(memoryview(data)[:size])
            self.taken = size
        self.rest -= size
        if self.observed is not None:
            self.observed.add(data, size)
        if not self.rest:
            if self.observed is not None:
                self.observed.show(self.state.observer, self.now_ns, rewriter or UNREAD)
            self.observed = self.rewriter = None
        return size

    def rewrite(self, burst: Burst, data: bytes, pos: int, size: int) -> Rewriter:
        """Give the first part of a response to its rewriter."""
        self.key, after = burst[0], pos + 4 + size
        rewriter = self.rewriter_of(burst, size)
        assert rewriter is not None
        self.pass_to(data, pos)
        self.out += rewriter.feed(memoryview(data)[pos + 4 : after])
        self.taken = min(after, len(data))
        return rewriter

    def rewriter_of(self, burst: Burst, size: int) -> Rewriter | None:
        """The rewriter of a response; None if it names no address."""
        state = self.state
        rewriter = rewriter_for(burst[0], burst[1], size, state.addresses, state.path.limits.hold)
        if rewriter is not None:
            state.path.meter.rewritten[burst[0]] += 1
        return rewriter

    def whole(self, data: bytes, pos: int, size: int) -> bool:
        """Read a small response whole, and pass it on as it is or rewritten; False if more bytes are needed.

        Raises:
            PairFailure: It is too large to be held.
        """
        if size > self.state.path.limits.hold.response_bytes:
            self.pass_to(data, pos)
            raise PairFailure(Cause.MALFORMED_RESPONSE, f"a response of {size} bytes to a small request")
        if len(data) - pos < 4 + size:
            self.needed = 4 + size
            return False
        _, burst = self.state.outstanding.popleft()
        frame = data[pos + 4 : pos + 4 + size]
        instead = self.WHOLE[burst[0]](self, frame, burst[1])
        if instead is not None:
            self.pass_to(data, pos)
            self.out += (pack_length(len(instead)), instead)
            self.taken = pos + 4 + size
        ObservedResponse(burst, size, frame).show(self.state.observer, self.now_ns)
        return True

    def api_versions(self, frame: bytes, version: int) -> bytes | None:
        """Offer the APIs that can pass."""
        return rewrite_api_versions(frame, version, self.state.path.policy)

    def handshake(self, frame: bytes, version: int) -> bytes | None:
        """Note whether the broker supports the mechanism."""
        response = response_body(SaslHandshakeResponse, version, frame)
        if response is not None:
            self.state.sasl.handshake_answered(response.error_code)
        return None

    def authenticate(self, frame: bytes, version: int) -> bytes | None:
        """Note whether the broker accepts the client."""
        response = response_body(SaslAuthenticateResponse, version, frame)
        if response is None:
            self.state.sasl.fail()
        else:
            self.state.sasl.token_answered(response.error_code == 0, response.auth_bytes)
        return None

    def local(self, data: bytes, pos: int, end: int) -> int:
        """Send the oldest answer, which is a local one, or pass a SASL token without a header.

        Returns:
            The offset of the next response. `needed` is not 0 if this one is not ready.
        """
        state = self.state
        answer = state.outstanding[0][1][3]
        assert answer is not None
        if answer is RAW_TOKEN:
            return self.raw_token(data, pos, end)
        if answer.frame is None:
            if pos < end:
                self.is_blocked = True
                self.held_since_ns = self.now_ns
                state.upstream.hold(Pause.LOCAL_ANSWER)
            self.needed = HEAD
            return pos
        _, burst = state.outstanding.popleft()
        self.pass_to(data, pos)
        if not answer.frame:
            raise PairFailure(Cause.BAD_REQUEST, "a telemetry request that cannot be answered")
        self.out += (pack_length(len(answer.frame)), answer.frame)
        if answer.close is not None:
            raise answer.close
        ObservedResponse(burst, len(answer.frame), answer.frame).show(state.observer, self.now_ns)
        return pos

    def raw_token(self, data: bytes, pos: int, end: int) -> int:
        """Pass a SASL token without a header. Returns the offset after it, if all of it is there."""
        if pos + 4 > end:
            self.needed = 4
            return pos
        (size,) = unpack_int32(data, pos)
        if not 0 <= size <= self.state.path.limits.max_token_bytes:
            raise PairFailure(Cause.MALFORMED_RESPONSE, f"a SASL token of {size} bytes")
        after = pos + 4 + size
        if after > end:
            self.needed = 4 + size
            return pos
        self.state.outstanding.popleft()
        self.state.sasl.raw_answered(data[pos + 4 : after])
        return after

    def answer_ready(self) -> None:
        """Send local answers whose turn has come, and what waited for them."""
        if self.rest:
            return
        outstanding = self.state.outstanding
        answer = outstanding[0][1][3] if outstanding else None
        if answer is None or answer.frame is None:
            return
        if not self.is_blocked:
            self.before_partial()
            return
        self.is_blocked = False
        self.state.upstream.release(Pause.LOCAL_ANSWER)
        data, self.partial = bytes(self.partial or b""), None
        if not self.is_counted:
            self.time_held()
        self.count_held()
        self.feed(data)

    def before_partial(self) -> None:
        """Send local answers that are ready; the start of a later response stays held back."""
        needed = self.needed
        self.aligned(b"", 0, 0)
        self.needed = needed
        self.flush()

    def pass_to(self, data: bytes, end: int) -> None:
        """Add the bytes of the chunk up to `end` to the pieces for the client, as they are."""
        if self.taken < end:
            self.out.append(memoryview(data)[self.taken : end])
            self.taken = end

    def flush(self) -> None:
        """Send the pieces."""
        out = self.out
        if len(out) == 1:
            self.state.client.write(out[0])
        elif out:
            self.state.client.writelines(out)
        self.out = []


Responses.WHOLE = {
    API_VERSIONS: Responses.api_versions,
    HANDSHAKE: Responses.handshake,
    AUTHENTICATE: Responses.authenticate,
}
