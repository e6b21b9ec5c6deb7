"""All client instances, within bounds of their number and memory, and their changes since the last commit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from odradek.temporality.client_state import CLIENT_BYTES, NO_STREAM, STREAM_BYTES, ClientState, read_client
from odradek.temporality.counts import Counts, Limits
from odradek.temporality.shape import SLOT_BYTES, Shape, Shapes, stored_identities
from odradek.temporality.stream_key import StreamKey, StreamKeys

LEAST_SILENCE_MS: Final = 60_000
SLACK_MS: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes since the last commit, as bytes for a store.

    A store deletes first, then writes.
    """

    clients: Mapping[bytes, bytes | None]
    """States by client instance id; None for an instance that was forgotten."""
    shapes: Mapping[bytes, bytes]
    """New shapes by their digests. States refer to them."""
    unused_shapes: Sequence[bytes]


class Clients:
    """The states of all client instances, the longest silent first."""

    def __init__(self, limits: Limits, counts: Counts, keys: StreamKeys) -> None:
        self.limits = limits
        self.counts = counts
        self.keys = keys
        self.shapes = Shapes(keys)
        self.states: OrderedDict[bytes, ClientState] = OrderedDict()
        self.closing: OrderedDict[bytes, None] = OrderedDict()
        """Instances that have said goodbye, in the order in which they did."""
        self.streams = 0
        self.client_bytes = 0
        self.changed: set[bytes] = set()
        self.stored_shapes: dict[bytes, Shape] = {}

    @property
    def held_bytes(self) -> int:
        """Approximate memory of all states."""
        return self.client_bytes + self.shapes.held_bytes + self.keys.held_bytes

    def of(self, instance_id: bytes, now_ms: int) -> ClientState:
        """The state of an instance. It is new if there is none, or if the instance was silent for too long.

        A state for which there is no memory left is not kept, and gets no streams.
        """
        client = self.states.get(instance_id)
        if client is not None:
            if now_ms - client.last_ms <= self.retention_ms(client):
                self.states.move_to_end(instance_id)
                return client
            self.forget(instance_id)
        client = ClientState(self.shapes.empty)
        client.last_ms = now_ms
        if self.held_bytes + CLIENT_BYTES <= self.limits.max_bytes:
            self.states[instance_id] = client
            self.shapes.use(client.shape)
            self.client_bytes += client.held_bytes
        return client

    def retention_ms(self, client: ClientState) -> int:
        return self.limits.linger_ms if client.closed else self.limits.retain_ms

    def heard_from(
        self, instance_id: bytes, client: ClientState, now_ms: int, interval_ms: int, closed: bool
    ) -> None:
        """Note a record of an instance."""
        if self.states.get(instance_id) is not client:
            return
        client.last_ms, client.interval_ms = now_ms, interval_ms
        self.changed.add(instance_id)
        if client.closed != closed:
            client.closed = closed
            if closed:
                self.closing[instance_id] = None
            else:
                self.closing.pop(instance_id, None)

    def admit(self, instance_id: bytes, client: ClientState, keys: Sequence[StreamKey], now_ms: int) -> bool:
        """Give a client the streams of a push that it does not have yet, as far as the limits allow.

        Args:
            instance_id: The client instance.
            client: Its state.
            keys: The streams of the push, each once.
            now_ms: When the host received the push.

        Returns:
            Whether it has all of them.
        """
        if not missing(client, keys):
            return True
        self.drop_silent(client, now_ms)
        new = missing(client, keys)
        most = max(0, self.limits.max_client_streams - len(client.shape.keys))
        admitted = new[: self.room(client, new[:most])] if self.states.get(instance_id) is client else []
        if admitted:
            old = range(len(client.shape.keys))
            self.move(client, [*client.shape.keys, *admitted], [*old, *[NO_STREAM] * len(admitted)])
        return len(admitted) == len(new)

    def room(self, client: ClientState, keys: Sequence[StreamKey]) -> int:
        """How many of these streams, which are new to a client, fit the limits."""
        left_bytes = self.limits.max_bytes - self.held_bytes
        left_text = self.limits.max_client_bytes - client.shape.text_bytes
        left_streams = max(0, self.limits.max_streams - self.streams)
        for count, key in enumerate(keys[:left_streams]):
            left_bytes -= STREAM_BYTES + SLOT_BYTES + self.keys.new_bytes(key)
            left_text -= self.keys.text_bytes(key)
            if left_bytes < 0 or left_text < 0:
                return count
        return min(len(keys), left_streams)

    def drop_silent(self, client: ClientState, now_ms: int) -> None:
        """Forget the streams of a client that had no point for long: most likely their labels are gone."""
        oldest_s = (now_ms - self.limits.retain_ms) // 1000
        if not client.seen or min(client.seen) >= oldest_s:
            return
        kept = [position for position, seen_s in enumerate(client.seen) if seen_s >= oldest_s]
        self.counts.forgotten_streams += len(client.seen) - len(kept)
        self.move(client, [client.shape.keys[position] for position in kept], kept)

    def move(self, client: ClientState, keys: Sequence[StreamKey], positions: Sequence[int]) -> None:
        """Give a client another shape."""
        before, shape, old = client.held_bytes, self.shapes.of(keys), client.shape
        self.streams += len(keys) - len(old.keys)
        self.shapes.use(shape)
        client.move_to(shape, positions)
        self.shapes.release(old)
        self.client_bytes += client.held_bytes - before

    def resized(self, instance_id: bytes, client: ClientState, before_bytes: int) -> None:
        """Account for histograms that have grown."""
        if self.states.get(instance_id) is client:
            self.client_bytes += client.held_bytes - before_bytes

    def forget(self, instance_id: bytes) -> None:
        """Forget an instance and its totals."""
        client = self.states.pop(instance_id)
        self.closing.pop(instance_id, None)
        self.streams -= len(client.shape.keys)
        self.client_bytes -= client.held_bytes
        self.shapes.release(client.shape)
        self.changed.add(instance_id)
        self.counts.forgotten_clients += 1

    def forget_silent(self, now_ms: int, at_most: int) -> int:
        """Forget instances that were silent for longer than they are retained; return how many.

        Args:
            now_ms: Epoch milliseconds.
            at_most: Limit for one call.
        """
        count = 0
        for waiting in (self.closing, self.states):
            for instance_id in list(islice(waiting, at_most - count)):
                client = self.states[instance_id]
                if client.last_ms > now_ms + self.limits.retain_ms:
                    waiting.move_to_end(instance_id)  # its time is wrong: it must not hold up the others
                elif now_ms - client.last_ms > self.retention_ms(client):
                    self.forget(instance_id)
                    count += 1
                else:
                    break
        return count

    @property
    def newest_ms(self) -> int:
        """When the host received the last record; 0 if there is none."""
        return self.states[next(reversed(self.states))].last_ms if self.states else 0

    def is_live(self, client: ClientState, now_ms: int) -> bool:
        """Whether an instance had a record recently, by its push interval."""
        return now_ms - client.last_ms <= silence_ms(client.interval_ms)

    def take_changes(self) -> Changes:
        """The changes since the last call. Store them, or give up the engine."""
        clients: dict[bytes, bytes | None] = {}
        shapes: dict[bytes, bytes] = {}
        unused = [digest for digest, shape in self.stored_shapes.items() if not shape.users]
        for digest in unused:
            del self.stored_shapes[digest]
        for instance_id in self.changed:
            client = self.states.get(instance_id)
            if client is None:
                clients[instance_id] = None
                continue
            digest = client.shape.name()
            if digest not in self.stored_shapes:
                self.stored_shapes[digest] = client.shape
                shapes[digest] = client.shape.stored()
            clients[instance_id] = client.stored()
        self.changed.clear()
        return Changes(clients=clients, shapes=shapes, unused_shapes=unused)

    def restore(self, shapes: Mapping[bytes, bytes], clients: Mapping[bytes, bytes]) -> None:
        """Take a stored state, before the first push. The limits hold for new streams only.

        Raises:
            BadState: The state is damaged.
        """
        read: dict[bytes, Shape] = {}
        for digest, stored in shapes.items():
            keys = [self.keys.key(identity) for identity in stored_identities(stored)]
            read[digest] = self.shapes.of(keys)
            self.shapes.use(read[digest])
        self.keys.forget_unused()
        found = [(instance_id, read_client(stored, read)) for instance_id, stored in clients.items()]
        for instance_id, client in sorted(found, key=lambda each: each[1].last_ms):
            self.states[instance_id] = client
            self.shapes.use(client.shape)
            self.streams += len(client.shape.keys)
            self.client_bytes += client.held_bytes
            if client.closed:
                self.closing[instance_id] = None
        for digest, shape in read.items():
            self.stored_shapes[digest] = shape
            self.shapes.release(shape)


def missing(client: ClientState, keys: Sequence[StreamKey]) -> list[StreamKey]:
    """The streams that a client does not have."""
    positions = client.shape.positions
    return [key for key in keys if key not in positions]


def oldest_live_s(client: ClientState, now_ms: int) -> int:
    """The second since which a stream of a client must have had a point, if it has not ended."""
    return (now_ms - silence_ms(client.interval_ms)) // 1000


def silence_ms(interval_ms: int) -> int:
    """How long a healthy client may be silent.

    After a push that was refused for its subscription, it waits up to two and a half intervals.
    """
    return max(LEAST_SILENCE_MS, 5 * interval_ms // 2 + SLACK_MS)
