"""A channel whose client is observed: its metrics are derived from its requests and their answers."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from odradek.broker.dispatch.dispatcher import Answer
from odradek.broker.dispatch.throttling import Throttled
from odradek.gateway.observation.apis import LOOKED_AT, OPENING, PRODUCE
from odradek.gateway.observation.observer import HEAD_BYTES, Observer
from odradek.gateway.pair_failure import PairFailure
from odradek.gateway.pair_identity import PairIdentity
from odradek.gateway.produce_beginning import batches_walk, counted, nearest, read_acks
from odradek.net.channel import Channel
from odradek.net.channel_owner import ChannelOwner
from odradek.plugin.context import UNKNOWN, ConnectionContext
from odradek.waiting.deferred import Deferred
from odradek.wire.errors import WireError
from odradek.wire.parts import Parts
from odradek.wire.utf8 import LENIENT

LENGTH_BYTES: Final = 4
SHORTEST_HEADER: Final = 10
"""API key, version, correlation id, and the length of the client id."""
REQUEST_HEAD_BYTES: Final = 1024
"""So much of a request is shown to the observer, if it is not in a buffer of its own."""

unpack_header: Callable[..., tuple[int, int, int]] = struct.Struct(">hh4xh").unpack_from
AnswerFrames = Callable[[bytes | memoryview, int, ConnectionContext], Answer]


class ObservedChannel(Channel):
    """The host's end of one connection that is observed.

    Requests of a connection are answered one after the other, so at most one waits for its answer.
    """

    __slots__ = ("asked_ns", "identity", "inner", "is_stale", "key", "pair", "version", "waits")

    def __init__(self, owner: ChannelOwner, observer: Observer) -> None:
        super().__init__(owner)
        self.identity = PairIdentity("", 0, "")
        self.is_stale = True
        """The identity has to be read again."""
        self.pair = observer.opened(self.identity)
        self.waits = False
        """A request waits for its answer."""
        self.key = self.version = self.asked_ns = 0

    @property
    def answer(self) -> AnswerFrames:
        """Answers a request and observes it."""
        return self.observed

    @answer.setter
    def answer(self, answer: AnswerFrames) -> None:
        self.inner = answer

    def observed(self, frame: bytes | memoryview, offset: int, context: ConnectionContext) -> Answer:
        """Answer a request.

        Raises:
            WireError, CloseConnection: As `Dispatcher.answer`.
        """
        self.waits = False
        if len(frame) - offset >= SHORTEST_HEADER:
            self.note_request(frame, offset, context)
        answer = self.inner(frame, offset, context)
        if answer is None:
            self.waits = False
        elif not isinstance(answer, Deferred):
            self.note_answer(answer)
        return answer

    def note_request(self, frame: bytes | memoryview, offset: int, context: ConnectionContext) -> None:
        """Show a request to the observer."""
        key, version, client_id_bytes = unpack_header(frame, offset)
        if key in OPENING:
            self.is_stale = True
        elif self.is_stale:
            self.identify(frame, offset + SHORTEST_HEADER, client_id_bytes, context)
        if isinstance(frame, bytes):
            head, at = frame, offset
        else:
            head, at = bytes(frame[offset : offset + REQUEST_HEAD_BYTES]), 0
        self.key, self.version, self.asked_ns, self.waits = key, version, self.monotonic_ns(), True
        size = LENGTH_BYTES + len(frame) - offset
        if key == PRODUCE and self.note_produce(version, frame, offset, size):
            return
        if key in LOOKED_AT:
            self.pair.look(key, version, head, at)
        self.pair.requests(key, version, 1, size, 1)

    def note_produce(self, version: int, frame: bytes | memoryview, offset: int, size: int) -> bool:
        """Show a Produce request to the observer; False if the host will refuse it as malformed."""
        try:
            found = read_acks(frame, offset, len(frame) - offset, version)
        except PairFailure:
            return False
        assert found is not None, "the frame is complete"
        acks, acks_end = found
        walk = batches_walk(nearest(version))
        records, batches, batch_bytes, topics = counted(walk, frame, offset + acks_end, len(frame))
        self.pair.produce(version, acks, 1, size, records, batches, batch_bytes, 1)
        self.pair.wrote(version, topics)
        return True

    def identify(
        self, frame: bytes | memoryview, at: int, client_id_bytes: int, context: ConnectionContext
    ) -> None:
        """Read who the client is; the requests that open a connection have told it."""
        identity = self.identity
        identity.address, identity.port = context.client_address, context.client_port
        identity.listener, identity.node_id = context.listener_name, context.node_id
        identity.security_protocol = context.security_protocol
        identity.principal = context.principal
        name, version = context.client_software_name, context.client_software_version
        identity.software_name = "" if name == UNKNOWN else name
        identity.software_version = "" if version == UNKNOWN else version
        identity.client_id = bytes(frame[at : at + max(client_id_bytes, 0)]).decode("utf-8", LENIENT)
        self.is_stale = False

    def note_answer(self, answer: bytes | Parts | Throttled | WireError | None) -> None:
        """Show an answer to the observer, unless the protocol has none."""
        frame = answer.frame if isinstance(answer, Throttled) else answer
        if not self.waits or frame is None or isinstance(frame, WireError) or not len(frame):
            return
        self.waits = False
        head = frame if isinstance(frame, bytes) else beginning(frame)
        size = len(frame) - LENGTH_BYTES
        latency_ns = self.monotonic_ns() - self.asked_ns
        self.pair.responses(self.key, 1, len(frame), latency_ns)
        self.pair.outcome(self.key, self.version, size, head, LENGTH_BYTES)

    def resume(self, answer: bytes | Parts | Throttled | WireError | None) -> None:
        self.note_answer(answer)
        if answer is None:
            self.waits = False
        super().resume(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        by_client = not self.closing
        outstanding = [self.key] if self.waits else []
        in_order = self.ends_in_order(exc)
        super().connection_lost(exc)
        self.pair.closed("client" if by_client else "broker", outstanding, in_order)


def beginning(frame: Parts) -> bytes:
    """The first bytes of an answer with records, as many as the observer wants."""
    head = b""
    for piece in frame.pieces:
        if not isinstance(piece, bytes) or len(head) >= HEAD_BYTES + LENGTH_BYTES:
            break
        head += piece[: HEAD_BYTES + LENGTH_BYTES]
    return head
