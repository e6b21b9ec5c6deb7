"""The account of one pair: the part of the observation that runs for every frame.

A pair adds to the rows of its client directly. A row that does not exist yet is the only slow path: there the
pair finds its client, which is known by then. Rows end with their window, so each pair comes by again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Final, Protocol

from odradek.gateway.observation.apis import (
    COORDINATION,
    FETCH,
    INIT_PRODUCER_ID,
    METADATA,
    OPENING,
    PRODUCE,
    ROLES,
    TELEMETRY,
    Openings,
    Role,
)
from odradek.gateway.observation.client_account import (
    BOOTSTRAP_NODE,
    MAX_TRANSACTIONAL_IDS,
    ClientAccount,
    NodeAccount,
)
from odradek.gateway.observation.fetch_reads import FetchReads
from odradek.gateway.observation.fetch_watch import FetchWatch
from odradek.gateway.observation.membership import Coordination
from odradek.gateway.observation.observer import CloseCause
from odradek.gateway.observation.produce_response import produce_answer
from odradek.gateway.observation.request_beginning import beginning
from odradek.gateway.observation.row import BOUNDS_NS, DISCONNECTED, Produced, Row
from odradek.gateway.observation.topic_errors import (
    KEPT_BYTES,
    has_errors,
    names_of,
    partitions_of,
    topics_of,
)
from odradek.gateway.pair_failure import PairFailure
from odradek.gateway.pair_identity import PairIdentity
from odradek.gateway.produce_beginning import BY_ID, OfTopic
from odradek.plugin.context import UNKNOWN
from odradek.telemetry.client_key import ClientKey
from odradek.telemetry.goodbyes import Goodbyes
from odradek.telemetry.group_incidents import Asked
from odradek.waiting.clock import Clock
from odradek.wire.errors import WireError
from odradek.wire.messages.init_producer_id import InitProducerIdRequest
from odradek.wire.utf8 import LENIENT

CORRELATION_ID_BYTES: Final = 4
MOST_WRITTEN: Final = 10_000
"""Topics of a connection between two looks."""
FASTEST_NS: Final = BOUNDS_NS[0]
"""The bound of the first bucket, which most responses belong to."""


def key_of(identity: PairIdentity) -> ClientKey:
    """The observed client that a pair belongs to."""
    return ClientKey(
        identity.principal,
        identity.client_id,
        identity.address,
        identity.software_name or UNKNOWN,
        identity.software_version or UNKNOWN,
    )


class SeenIncidents(Protocol):
    """Takes what goes wrong in responses."""

    def throttled(self, key: ClientKey, api_key: int, time_ms: int) -> None:
        """Take the throttle time of a response to a client."""

    def member(self, key: ClientKey, asked: Asked, code: int, pair: Hashable) -> None:
        """Take what a member of a group has asked by a pair, and the error code of the answer."""

    def closed(self, pair: Hashable) -> None:
        """Take the end of the pair of a member."""

    def topics(self, key: ClientKey, api_key: int, errors: Iterable[tuple[str, int]]) -> None:
        """Take the topics and the error codes of a response to a client."""


class Clients(Protocol):
    """Knows all observed clients."""

    clock: Clock
    goodbyes: Goodbyes
    fetch_watch: FetchWatch | None
    incidents: SeenIncidents | None
    """Takes incidents; None if others tell them."""

    def note_uses(self, account: ClientAccount, pair: PairAccount) -> None:
        """Take the topics that a pair has used."""

    def bind(self, pair: PairAccount) -> None:
        """Call `PairAccount.join` with the pair's client."""


class PairAccount:
    """A `PairObserver` that adds to the account of the pair's client."""

    __slots__ = (
        "client", "clients", "coordination", "fetches", "identity", "key", "node", "openings", "rows",
        "writing", "written", "written_by_id",
    )  # fmt: skip

    def __init__(self, clients: Clients, identity: PairIdentity, openings: Openings) -> None:
        self.clients = clients
        self.identity = identity
        self.openings = openings
        self.client: ClientAccount | None = None
        """None until a request shows who the client is, and after its account was closed."""
        self.key: ClientKey | None = None
        """Of the identity when the pair found its client."""
        self.coordination: Coordination | None = None
        self.fetches: FetchReads | None = None
        self.written: dict[bytes, Produced] = {}
        """What it has written, by name or id of the topic, since this was asked last."""
        self.writing: bytes | None = None
        """The topic of the request that is arriving in pieces, if it is its only one."""
        self.written_by_id = False
        self.node = NodeAccount(BOOTSTRAP_NODE)
        """At first an account of its own, then the client's."""
        self.rows = self.node.rows

    # For every frame

    def produce(
        self,
        version: int,
        acks: int,
        count: int,
        size: int,
        records: int,
        batches: int,
        batch_bytes: int,
        in_flight: int,
    ) -> None:
        row = self.rows.get(PRODUCE) or self.new_row(PRODUCE)
        row.requests += count
        row.request_bytes += size
        row.version = version
        produced = row.produced
        assert produced is not None
        produced.records += records
        produced.batches += batches
        produced.bytes += batch_bytes
        if not acks:
            produced.acks0 += count
        if in_flight > self.node.in_flight_max:
            self.node.in_flight_max = in_flight

    def wrote(self, version: int, topics: Iterable[OfTopic]) -> None:
        written = self.written
        self.written_by_id = version >= BY_ID
        for topic, records, batches, size_bytes in topics:
            produced = written.get(topic)
            if produced is None:
                if len(written) >= MOST_WRITTEN:
                    written.clear()
                produced = written[topic] = Produced()
            produced.records += records
            produced.batches += batches
            produced.bytes += size_bytes

    def writes(self, version: int, topic: tuple[bytes, bool] | None) -> None:
        self.writing = None
        if topic is not None:
            name, is_only = topic
            self.wrote(version, [(name, 0, 0, 0)])
            self.writing = name if is_only else None

    def batches(self, records: int, batches: int, batch_bytes: int) -> None:
        produced = self.row(PRODUCE).produced
        assert produced is not None
        produced.add(records, batches, batch_bytes)
        if self.writing is not None:
            self.written.setdefault(self.writing, Produced()).add(records, batches, batch_bytes)

    def requests(self, api_key: int, version: int, count: int, size: int, in_flight: int) -> None:
        row = self.rows.get(api_key) or self.new_row(api_key)
        row.requests += count
        row.request_bytes += size
        row.version = version
        if in_flight > self.node.in_flight_max:
            self.node.in_flight_max = in_flight

    def responses(self, api_key: int, count: int, size: int, latency_ns: int) -> None:
        row = self.rows.get(api_key) or self.new_row(api_key)
        row.responses += count
        row.response_bytes += size
        row.latency_ns += count * latency_ns
        if latency_ns > row.latency_max_ns:
            row.latency_max_ns = latency_ns
        row.buckets[bisect_left(BOUNDS_NS, latency_ns) if latency_ns > FASTEST_NS else 0] += count

    def outcome(  # noqa: C901  straight-line: it runs for most responses
        self,
        api_key: int,
        version: int,
        size: int,
        head: bytes,
        at: int,
        error_code: int | None = None,
        throttle_ms: int | None = None,
    ) -> None:
        if api_key == METADATA:
            self.described(version, head, at, size)
        if error_code == 0 and throttle_ms == 0:
            return  # the rewriter has read both, and those of partitions
        row = self.row(api_key)
        if row.produced is not None:
            throttle_ms, errors = produce_answer(version, head, at, size)
            if throttle_ms > 0:
                self.throttled(row, throttle_ms)
            for code, times in errors.items():
                row.fail(code, times)
            if errors:
                self.refused(version, head[at : at + size])
            return
        if version != row.opening_version:
            row.opening_version, row.opening = version, self.openings.find(api_key, version)
        if row.opening is not None:
            try:
                _, _, _, own_ms, _, own_error = row.opening(head, at + CORRELATION_ID_BYTES, len(head))
            except WireError:
                pass  # it is not all there
            else:
                throttle_ms, error_code = own_ms or throttle_ms, own_error or error_code
        if throttle_ms and throttle_ms > 0:
            self.throttled(row, throttle_ms)
        if error_code:
            row.fail(error_code)
        if api_key in COORDINATION:
            self.coordinated(error_code or 0, head, at, size)

    def described(self, version: int, head: bytes, at: int, size: int) -> None:
        """Look at a Metadata response."""
        client, incidents = self.client, self.clients.incidents
        if client is None or incidents is None:
            return
        if size <= KEPT_BYTES:
            client.metadata = version, head[at : at + size]
        if has_errors(version, head, at, size):
            incidents.topics(client.key, METADATA, topics_of(version, head[at : at + size]))

    def throttled(self, row: Row, throttle_ms: int) -> None:
        """The broker holds the client back."""
        row.throttle(throttle_ms)
        client, incidents = self.client, self.clients.incidents
        if client is not None and incidents is not None and row.api_key not in TELEMETRY:
            incidents.throttled(client.key, row.api_key, throttle_ms)

    def refused(self, version: int, frame: bytes) -> None:
        """Look at a Produce response with errors."""
        client, incidents = self.client, self.clients.incidents
        if client is not None and incidents is not None:
            names = names_of(*client.metadata)
            incidents.topics(client.key, PRODUCE, partitions_of(version, frame, names))

    def row(self, api_key: int) -> Row:
        """The row of an API in the current window, known or new."""
        return self.rows.get(api_key) or self.new_row(api_key)

    # For the first frame of an API in a window, and for rare APIs

    def new_row(self, api_key: int) -> Row:
        """The row of an API that this window does not have yet."""
        if self.client is None and api_key not in OPENING:
            self.clients.bind(self)
        client = self.client
        if client is not None:
            client.role |= ROLES.get(api_key, Role.NONE)
            if api_key in TELEMETRY:
                client.pushes = True
        return self.node.row(api_key)

    def look(self, api_key: int, version: int, head: bytes, at: int) -> Callable[[memoryview], None] | None:
        if api_key == FETCH:
            reads = self.fetches or self.first_fetch()
            return None if reads is None else reads.note(version, head, at)
        self.row(api_key)  # with which the pair finds its client
        if api_key == INIT_PRODUCER_ID:
            self.note_transactional_id(version, head, at)
            return None
        if self.coordination is None:
            self.coordination = Coordination()
        self.coordination.request(api_key, version, head, at, self.clients.clock.monotonic_ns())
        return None

    def first_fetch(self) -> FetchReads | None:
        """Begin to follow Fetch requests, if that is wanted."""
        watch = self.clients.fetch_watch
        if watch is not None:
            self.fetches = watch.opened()
        return self.fetches

    def coordinated(self, error_code: int, head: bytes, at: int, size: int) -> None:
        """Look at a response to a member of a group."""
        client, incidents = self.client, self.clients.incidents
        if self.coordination is None or client is None:
            return
        now_ns = self.clients.clock.monotonic_ns()
        asked = self.coordination.response(client.memberships, error_code, head, at, size, now_ns)
        if asked is not None and incidents is not None:
            incidents.member(client.key, asked.told, error_code, self)

    def note_transactional_id(self, version: int, head: bytes, at: int) -> None:
        """Remember the transactional id of an InitProducerId request."""
        try:
            _, (text,) = beginning(InitProducerIdRequest, version, head, at, ("transactional_id",))
        except (WireError, PairFailure, IndexError, ValueError):
            return
        client = self.client
        if text and client is not None and len(client.transactional_ids) < MAX_TRANSACTIONAL_IDS:
            client.transactional_ids.add(text)

    def closed(self, by: CloseCause, outstanding: Iterable[int], in_order: bool) -> None:
        if self.client is None:
            if self.rows.keys() <= OPENING:
                return  # such as a health check, or a login that failed
            self.clients.bind(self)
        for api_key in outstanding:
            self.row(api_key).fail(DISCONNECTED)
        self.node.closed(by)
        if self.client is not None:
            self.client.pairs.discard(self)
            self.client.torn |= not in_order
            self.clients.note_uses(self.client, self)
            if self.fetches is not None and self.clients.fetch_watch is not None:
                self.clients.fetch_watch.ended(self.client, self.fetches)
            self.client.closed_ms = self.clients.clock.monotonic_ms()
            self.tell_end(self.client, in_order)

    def tell_end(self, client: ClientAccount, in_order: bool) -> None:
        """Tell the end of the connection to those that judge the end of its client."""
        if not in_order and client.pushes:
            self.clients.goodbyes.was_torn(client.key.place)
        if self.coordination is not None:
            self.coordination.left(client.memberships)
            if self.clients.incidents is not None:
                self.clients.incidents.closed(self)

    # Called by the observation

    def take_written(self) -> Mapping[str | bytes, Produced]:
        """What it has written since this was called last, by name or id of the topic."""
        found, self.written = self.written, {}
        by_id = self.written_by_id
        return {
            name if by_id else name.decode("utf-8", LENIENT): produced for name, produced in found.items()
        }

    @property
    def node_id(self) -> int:
        """The node that the pair leads to."""
        return BOOTSTRAP_NODE if self.identity.node_id is None else self.identity.node_id

    def join(self, client: ClientAccount) -> None:
        """Add what the pair has seen to this client's account, and what it sees from now on."""
        own, node = self.node, client.node(self.node_id)
        node.merge(own)
        is_new = self.key is None
        self.client, self.node, self.rows = client, node, node.rows
        self.key = key_of(self.identity)
        client.pairs.add(self)
        client.torn = False
        node.connections += is_new
        node.open += 1

    def leave(self) -> None:
        """Find the client again at the next frame: its account was closed, or it is another client."""
        if self.client is not None:
            self.client.pairs.discard(self)
            self.node.open -= 1
        self.client = None
        self.node = NodeAccount(BOOTSTRAP_NODE)
        self.rows = self.node.rows

    @property
    def is_moved(self) -> bool:
        """Whether the pair belongs to another client, or leads to another node, than at its last frame."""
        return self.key != key_of(self.identity) or self.node.node_id != self.node_id
