"""The responses of one pair: from the broker to the client, with the gateway's own answers in their places.

A response belongs to the oldest request that waits for one. Most responses pass as they come and are only
counted. Those that name addresses or API versions pass a rewriter.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from odradek.gateway.observation.observer import HEAD_BYTES, LONG_HEADS
from odradek.gateway.pair_failure import Cause, PairFailure
from odradek.gateway.pair_state import (
    IN_FLIGHT,
    LARGE_FRAME_BYTES,
    LOCAL_ANSWER,
    RAW_TOKEN,
    SMALLEST,
    Outstanding,
    PairState,
    unexpected,
)
from odradek.gateway.path_meter import HELD
from odradek.gateway.request_heads import unpack_int32
from odradek.gateway.rewriting.api_versions import rewrite_api_versions
from odradek.gateway.rewriting.catalog import ADDRESSED, AddressedApi, rewriter_for
from odradek.gateway.rewriting.rewriter import Rewriter
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
        "current", "head", "head_bytes", "held_since_ns", "is_blocked", "is_counted", "key", "needed",
        "now_ns", "out", "partial", "rest", "rewriter", "size", "state", "taken",
    )  # fmt: skip

    WHOLE: ClassVar[Mapping[int, Callable[[Responses, bytes, int], bytes | None]]]
    ADDRESSED: ClassVar[Mapping[int, AddressedApi]] = ADDRESSED
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
        self.current: Outstanding | None = None
        """The request of a response that is observed and not complete."""
        self.size = 0
        self.head = bytearray()
        self.head_bytes = 0

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
        if rest > end and self.rewriter is None and self.current is None:
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
            state.client.release(IN_FLIGHT)

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

    def walk(self, data: bytes, pos: int, end: int) -> int:  # noqa: C901  straight-line: each response passes
        """Find the responses of a chunk and treat each as its request demands.

        Returns:
            The offset of the first byte that is held back, or the end of the chunk.
        """
        outstanding, observer, now_ns = self.state.outstanding, self.state.observer, self.now_ns
        addressed = self.ADDRESSED
        self.needed = 0
        while True:
            if outstanding and outstanding[0][4] is not None:
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
            key = outstanding[0][1]
            after = pos + 4 + size
            if key in self.WHOLE:
                if not self.whole(data, pos, size):
                    return pos
                pos = after
                continue
            request = outstanding.popleft()
            version, api, rewriter = request[2], addressed.get(key), None
            error = throttle_ms = None
            if api is not None and version >= api.first:
                seen = api.seen(version, data, pos + 4, after) if after <= end else None
                if seen is None:
                    seen = rewriter = self.rewrite(request, data, pos, size)
                error, throttle_ms = seen.error_code, seen.throttle_ms
            if after > end:
                self.rest, self.rewriter = after - end, rewriter
                if observer is not None:
                    self.observe_rest(request, size, data, pos)
                return end
            if observer is not None:
                observer.response(key, version, size, now_ns - request[3], data, pos + 4, error, throttle_ms)
            pos = after

    def aligned(self, data: bytes, pos: int, end: int) -> int:
        """Send local answers whose turn has come, and pass SASL tokens without headers.

        Returns:
            The offset of the next response. `needed` is not 0 if it is held back.
        """
        outstanding = self.state.outstanding
        self.needed = 0
        while outstanding and outstanding[0][4] is not None and not self.needed:
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
        if self.current is not None:
            missing = self.head_bytes - len(self.head)
            if missing > 0:
                self.head += data[: min(missing, size)]
            if not self.rest:
                self.observed(self.current, self.size, bytes(self.head), 0, rewriter)
                self.current = None
        if not self.rest:
            self.rewriter = None
        return size

    def rewrite(self, request: Outstanding, data: bytes, pos: int, size: int) -> Rewriter:
        """Give the first part of a response to its rewriter."""
        self.key, after = request[1], pos + 4 + size
        rewriter = self.rewriter_of(request, size)
        assert rewriter is not None
        self.pass_to(data, pos)
        self.out += rewriter.feed(memoryview(data)[pos + 4 : after])
        self.taken = min(after, len(data))
        return rewriter

    def rewriter_of(self, request: Outstanding, size: int) -> Rewriter | None:
        """The rewriter of a response; None if it names no address."""
        state = self.state
        rewriter = rewriter_for(request[1], request[2], size, state.addresses, state.path.limits.hold)
        if rewriter is not None:
            state.path.meter.rewritten[request[1]] += 1
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
        request = self.state.outstanding.popleft()
        frame = data[pos + 4 : pos + 4 + size]
        instead = self.WHOLE[request[1]](self, frame, request[2])
        if instead is not None:
            self.pass_to(data, pos)
            self.out += (pack_length(len(instead)), instead)
            self.taken = pos + 4 + size
        if self.state.observer is not None:
            self.observed(request, size, data, pos + 4, None)
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
        answer = state.outstanding[0][4]
        assert answer is not None
        if answer is RAW_TOKEN:
            return self.raw_token(data, pos, end)
        if answer.frame is None:
            if pos < end:
                self.is_blocked = True
                self.held_since_ns = self.now_ns
                state.path.meter.answer_waits += 1
                state.upstream.hold(LOCAL_ANSWER)
            self.needed = HEAD
            return pos
        request = state.outstanding.popleft()
        self.pass_to(data, pos)
        if not answer.frame:
            raise PairFailure(Cause.BAD_REQUEST, "a telemetry request that cannot be answered")
        self.out += (pack_length(len(answer.frame)), answer.frame)
        if answer.close is not None:
            raise answer.close
        if state.observer is not None:
            self.observed(request, len(answer.frame), answer.frame, 0, None)
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
        if not outstanding or outstanding[0][4] is None or outstanding[0][4].frame is None:
            return
        if not self.is_blocked:
            self.before_partial()
            return
        self.is_blocked = False
        self.state.upstream.release(LOCAL_ANSWER)
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

    def observe_rest(self, request: Outstanding, size: int, data: bytes, pos: int) -> None:
        """Show a response to the observer when it is complete."""
        self.current = request
        self.size = size
        self.head_bytes = min(size, LONG_HEADS.get(request[1], HEAD_BYTES))
        self.head = bytearray(data[pos + 4 : pos + 4 + self.head_bytes])

    def observed(
        self, request: Outstanding, size: int, head: bytes, at: int, rewriter: Rewriter | None
    ) -> None:
        """Show a complete response to the observer."""
        observer = self.state.observer
        assert observer is not None
        latency_ns = self.now_ns - request[3]
        if rewriter is None:
            observer.response(request[1], request[2], size, latency_ns, head, at)
        else:
            observer.response(
                request[1], request[2], size, latency_ns, head, at, rewriter.error_code, rewriter.throttle_ms
            )


Responses.WHOLE = {
    API_VERSIONS: Responses.api_versions,
    HANDSHAKE: Responses.handshake,
    AUTHENTICATE: Responses.authenticate,
}
