"""The requests of one pair: from the client to the broker, or to the gateway's own answers.

A chunk is passed on whole and its frames are only counted. A frame is held back as long as a decision needs
more of its bytes: its head, the field acks of Produce, and the few requests that are read whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Final

from odradek.gateway.observation.apis import PASSING_LOOKED_AT
from odradek.gateway.pair_failure import Cause, PairFailure
from odradek.gateway.pair_state import (
    LARGE_FRAME_BYTES,
    RAW_TOKEN,
    Burst,
    LocalAnswer,
    PairState,
    Pause,
)
from odradek.gateway.produce_requests import PRODUCE, ProduceRequests
from odradek.gateway.request_heads import (
    HEAD_BYTES,
    SMALLEST_FRAME,
    Head,
    bad_length,
    client_id,
    client_id_end,
    starts_well,
    unpack_head,
    unpack_int32,
)
from odradek.gateway.rewriting.api_versions import LAST_API_VERSIONS, unsupported_api_versions
from odradek.gateway.sasl_watch import CANNOT_PASS, PASSING
from odradek.gateway.telemetry_answers import TelemetryAnswers
from odradek.gateway.whole_requests import RESOURCE_REQUESTS, only_client_metrics, request_body
from odradek.wire.codec import encode
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.api_versions import ApiVersionsRequest
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

HANDSHAKE, API_VERSIONS, AUTHENTICATE, SUBSCRIPTIONS, PUSH = 17, 18, 36, 71, 72
READ_WHOLE_BYTES: Final = 8192
"""ApiVersions and SaslHandshake requests up to this size are read."""


class Requests(ProduceRequests):
    """The direction from the client to the broker."""

    __slots__ = ("answering_bytes", "burst", "first", "partial", "sent", "skip", "special")

    SPECIAL: ClassVar[Mapping[int, Callable[[Any, bytes, int, Head], int]]]

    def __init__(self, state: PairState) -> None:
        super().__init__(state)
        self.special = self.SPECIAL
        if state.path.policy.own_resources:
            self.special = {**self.SPECIAL, **CLIENT_METRICS}
        self.skip = 0
        """Bytes of the current frame that are still to come, and pass."""
        self.partial: bytearray | None = None
        """The start of a frame that is held back, until it has `needed` bytes."""
        self.sent = 0
        """How much of the current chunk was passed on, or taken."""
        self.first = True
        """No request has passed yet."""
        self.answering_bytes = 0
        """Large telemetry requests whose answers are not ready."""
        self.burst: Burst = (-1, -1, 0, None)
        """The requests that the current one arrived with."""

    def feed(self, data: bytes) -> None:  # noqa: C901  each chunk passes
        """Take bytes of the client.

        Raises:
            PairFailure: The pair must close.
        """
        if self.partial is not None:
            self.partial += data
            is_large = self.needed >= LARGE_FRAME_BYTES
            if len(self.partial) < self.needed:
                if is_large:
                    self.count_held()
                return
            data, self.partial = bytes(self.partial), None
            if is_large:
                self.count_held()
        state = self.state
        rest, end = self.skip, len(data)
        if rest and self.reader is not None:
            self.reader(memoryview(data)[:rest])
            if rest <= end:
                self.reader = None
        if rest >= end:
            self.skip = rest - end
            state.upstream.write(data)
            return
        self.sent = 0
        self.now_ns = state.path.monotonic_ns()
        self.pass_on(data, self.walk(data, rest, end), end)
        if len(state.outstanding) >= state.path.limits.most_in_flight and not state.paused:
            state.paused = True
            state.path.meter.in_flight_pauses += 1
            state.client.hold(Pause.IN_FLIGHT)

    def pass_on(self, data: bytes, pos: int, end: int) -> None:
        """Send the bytes up to `pos`, except those that were taken, and hold the rest back."""
        if self.sent == 0 and pos >= end:
            self.state.upstream.write(data)
        elif self.sent < pos:
            self.state.upstream.write(data[self.sent : pos])
        if pos < end:
            self.partial = bytearray(data[pos:])
            self.skip = 0
            if self.needed >= LARGE_FRAME_BYTES:
                self.count_held()
        else:
            self.skip = pos - end

    def count_held(self) -> None:
        """Count the frame that is held back, and the telemetry that is being answered."""
        partial = len(self.partial or b"")
        missing = self.needed - partial if partial else 0
        self.state.client.holds(partial + self.answering_bytes, missing)

    def walk(self, data: bytes, pos: int, end: int) -> int:
        """Find the frames of a chunk and decide about each.

        Returns:
            The offset of the first frame that is held back; or the end of the last one, which may be beyond
            the chunk.
        """
        self.needed = 0
        if self.first or self.state.sasl.raw_rounds:
            pos = self.begin(data, pos)
        while pos + HEAD_BYTES <= end and not self.needed:
            head = unpack_head(data, pos)
            if head[1] == PRODUCE:
                pos = self.take_produce(head, data, pos, end)
            else:
                pos = self.take_burst(head, data, pos, end)
        self.needed = self.needed or HEAD_BYTES
        return pos

    def take_burst(  # noqa: C901  straight-line: it runs for every other request
        self, head: Head, data: bytes, pos: int, end: int
    ) -> int:
        """Decide about requests that follow each other and have the API and version of the first one's head.
        They are counted together.

        Returns:
            The offset of the first other request, or as `walk`. `needed` is not 0 if a request is held back.
        """
        state = self.state
        outstanding = state.outstanding
        most = state.path.limits.max_request_bytes
        _, key, version, _ = head
        self.burst = burst = (key, version, self.now_ns, None)
        handle = self.special.get(key)
        looks = state.observer if key in PASSING_LOOKED_AT else None
        start, count, reader = pos, 0, None
        try:
            while True:
                size, api_key, api_version, correlation_id = head
                if api_key != key or api_version != version:
                    break
                if not SMALLEST_FRAME <= size <= most:
                    raise bad_length(size, most)
                if handle is None:
                    outstanding.append((correlation_id, burst))
                elif needed := handle(self, data, pos, head):
                    self.needed = needed
                    break
                if looks is not None:
                    reader = looks.look(key, version, data, pos + 4)
                count += 1
                pos += size + 4
                if pos + HEAD_BYTES > end:
                    break
                head = unpack_head(data, pos)
        finally:
            if count:
                state.path.meter.requests[key] += count
                if state.observer is not None:
                    self.reader = reader
                    state.observer.requests(key, version, count, pos - start, len(outstanding))
        return pos

    def begin(self, data: bytes, pos: int) -> int:
        """Read the client id of the first request, or SASL tokens without headers.

        Returns:
            The offset of the next request. If more bytes are needed, `needed` is not 0.
        """
        sasl = self.state.sasl
        while sasl.raw_rounds and pos < len(data):
            size = unpack_int32(data, pos)[0] if pos + 4 <= len(data) else 0
            if not 0 <= size <= self.state.path.limits.max_token_bytes:
                raise PairFailure(Cause.BAD_REQUEST, f"a SASL token of {size} bytes")
            if pos + 4 + size > len(data):
                self.needed = 4 + size
                return pos
            sasl.raw_token(data[pos + 4 : pos + 4 + size])
            self.state.outstanding.append((0, (AUTHENTICATE, 0, self.now_ns, RAW_TOKEN)))
            pos += 4 + size
        if self.first:
            is_head = starts_well(data, self.state.path.limits.max_request_bytes)
            after = client_id_end(data, 0) if is_head else HEAD_BYTES
            if after > len(data):
                self.needed = after
                return 0
            self.first = False
            self.state.identity.client_id = client_id(data, 0)
        return pos

    def passes(self, head: Head) -> int:
        """Add a request that is passed on to those that wait for a response."""
        self.state.outstanding.append((head[3], self.burst))
        return 0

    def takes(self, data: bytes, pos: int, head: Head, answer: LocalAnswer) -> int:
        """Keep a frame back from the broker and answer it here; the chunk has all of it."""
        size, key, version, correlation_id = head
        if self.sent < pos:
            self.state.upstream.write(data[self.sent : pos])
        self.sent = pos + 4 + size
        self.state.outstanding.append((correlation_id, (key, version, self.now_ns, answer)))
        return 0

    def api_versions(self, data: bytes, pos: int, head: Head) -> int:
        """Note the software of the client; refuse a version whose response is not known."""
        size, _, version, correlation_id = head
        if size > READ_WHOLE_BYTES:
            raise PairFailure(Cause.BAD_REQUEST, f"an ApiVersions request of {size} bytes")
        if len(data) - pos < 4 + size:
            return 4 + size
        if not 0 <= version <= LAST_API_VERSIONS:
            answer = LocalAnswer(unsupported_api_versions(correlation_id))
            self.takes(data, pos, head, answer)
            self.state.answer_ready()
            return 0
        request = request_body(ApiVersionsRequest, version, data[pos : pos + 4 + size])
        if request is not None:
            self.note_client(request)
        return self.passes(head)

    def note_client(self, request: ApiVersionsRequest) -> None:
        """Take the names of a client, and compare the node that it expects with the one it has dialed."""
        identity = self.state.identity
        identity.software_name = request.client_software_name
        identity.software_version = request.client_software_version
        if request.node_id >= 0 and identity.node_id is not None and request.node_id != identity.node_id:
            self.state.path.meter.misrouted += 1

    def handshake(self, data: bytes, pos: int, head: Head) -> int:
        """Note the mechanism; refuse one that cannot pass a gateway."""
        size, _, version, correlation_id = head
        if size > READ_WHOLE_BYTES:
            raise PairFailure(Cause.BAD_REQUEST, f"a SaslHandshake request of {size} bytes")
        if len(data) - pos < 4 + size:
            return 4 + size
        request = request_body(SaslHandshakeRequest, version, data[pos : pos + 4 + size])
        mechanism = "" if request is None else request.mechanism
        if mechanism not in CANNOT_PASS:
            self.state.sasl.handshake(mechanism, version)
            return self.passes(head)
        refusal = SaslHandshakeResponse(
            error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=list(PASSING)
        )
        why = f"{mechanism} cannot pass a gateway: {CANNOT_PASS[mechanism]}"
        frame = correlation_id.to_bytes(4, signed=True) + encode(refusal, version)
        self.takes(data, pos, head, LocalAnswer(frame, PairFailure(Cause.MECHANISM, why)))
        self.state.answer_ready()
        return 0

    def authenticate(self, data: bytes, pos: int, head: Head) -> int:
        """Look at a SASL token; it is kept nowhere."""
        size, _, version, _ = head
        if size > self.state.path.limits.max_token_bytes:
            raise PairFailure(Cause.BAD_REQUEST, f"a SaslAuthenticate request of {size} bytes")
        if len(data) - pos < 4 + size:
            return 4 + size
        request = request_body(SaslAuthenticateRequest, version, data[pos : pos + 4 + size])
        self.state.sasl.token(b"" if request is None else request.auth_bytes)
        return self.passes(head)

    def telemetry(self, data: bytes, pos: int, head: Head) -> int:
        """Answer GetTelemetrySubscriptions and PushTelemetry here."""
        state, size = self.state, head[0]
        if state.path.answers is None:
            return self.passes(head)
        if size > state.path.limits.max_push_bytes:
            raise PairFailure(Cause.TELEMETRY_TOO_LARGE, f"a telemetry request of {size} bytes")
        if state.identity.awaiting_sasl:
            raise PairFailure(Cause.UNAUTHENTICATED, "telemetry before the broker has accepted the client")
        if len(data) - pos < 4 + size:
            return 4 + size
        return self.answers_here(data, pos, head, state.path.answers)

    def client_metrics(self, data: bytes, pos: int, head: Head) -> int:
        """Answer a request about CLIENT_METRICS resources here, if it is about nothing else."""
        state, (size, key, version, _) = self.state, head
        if state.path.answers is None or size > state.path.limits.max_push_bytes:
            return self.passes(head)
        if len(data) - pos < 4 + size:
            return 4 + size
        if not only_client_metrics(key, version, data[pos : pos + 4 + size]):
            return self.passes(head)
        if state.identity.awaiting_sasl:
            why = "a request for subscriptions before the broker has accepted the client"
            raise PairFailure(Cause.UNAUTHENTICATED, why)
        return self.answers_here(data, pos, head, state.path.answers)

    def answers_here(self, data: bytes, pos: int, head: Head, answers: TelemetryAnswers) -> int:
        """Let the host of the gateway answer a request; the chunk has all of it."""
        answer, size = LocalAnswer(), head[0]
        self.takes(data, pos, head, answer)
        frame = data[pos + 4 : pos + 4 + size]
        answers.answer(frame, self.state.identity, partial(self.answered, answer, head))
        if size >= LARGE_FRAME_BYTES and answer.frame is None:
            self.answering_bytes += size
            self.count_held()
        return 0

    def answered(self, answer: LocalAnswer, head: Head, frame: bytes) -> None:
        """A local answer is ready."""
        answer.frame = frame
        size = head[0]
        if self.answering_bytes and size >= LARGE_FRAME_BYTES:
            self.answering_bytes -= size
            self.count_held()
        self.state.answer_ready()


Requests.SPECIAL = {
    API_VERSIONS: Requests.api_versions,
    HANDSHAKE: Requests.handshake,
    AUTHENTICATE: Requests.authenticate,
    SUBSCRIPTIONS: Requests.telemetry,
    PUSH: Requests.telemetry,
}
CLIENT_METRICS: Final[Mapping[int, Callable[[Any, bytes, int, Head], int]]] = dict.fromkeys(
    RESOURCE_REQUESTS, Requests.client_metrics
)
"""The handlers of requests that may be about CLIENT_METRICS resources, if the gateway has its own."""
