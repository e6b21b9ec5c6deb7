"""The charges of one pair, and the time for which its client is not read."""

from __future__ import annotations

from collections import deque
from typing import Final

from odradek.broker.dispatch.throttling import Throttle, longer, throttle_labels
from odradek.gateway.pair_state import PairState, Pause
from odradek.gateway.path_quotas import PathQuotas
from odradek.gateway.throttling.mutations import MUTATIONS
from odradek.quota.client_quota_manager import ClientQuotaManager
from odradek.quota.controller_mutation_quota import ControllerMutationQuota
from odradek.quota.throttled_channels import ThrottledChannel

NS_PER_MS: Final = 1_000_000
LENGTH_BYTES: Final = 4
PRODUCE, FETCH, SHARE_FETCH = 0, 1, 78


class PairCharges:
    """The charges of one pair, as the quota managers of a host record them.

    A response is charged when its head has come: for the bytes of its Produce request, for its own bytes if
    it is a Fetch response, and for the time that the gateway has spent on the pair since the last charge. The
    longest throttle time counts.
    """

    __slots__ = ("managers", "mutations", "place", "produced", "quotas", "spent_ns", "state", "throttled_by")

    def __init__(self, quotas: PathQuotas, state: PairState) -> None:
        self.quotas = quotas
        self.managers = quotas.managers
        self.state = state
        self.spent_ns = 0
        """Time of the gateway's thread that is not charged yet."""
        self.produced: deque[int] = deque()
        """Sizes of Produce requests that wait for their responses."""
        self.mutations: deque[ControllerMutationQuota] = deque()
        """The quotas of controller mutations that wait for their responses."""
        self.place: ThrottledChannel | None = None
        """None while the client is not throttled."""
        self.throttled_by: ClientQuotaManager | None = None

    @property
    def client(self) -> tuple[str, str]:
        """User and client id, as quotas tell them apart."""
        identity = self.state.identity
        return identity.principal.partition(":")[2], identity.client_id

    def now_ms(self) -> int:
        """The monotonic time."""
        return self.state.path.monotonic_ns() // NS_PER_MS

    def silent_produce(self, size: int) -> None:
        """Charge for a Produce request without a response, and throttle its client."""
        now_ms, manager = self.now_ms(), self.managers.produce
        self.throttle(manager, manager.record_and_throttle_ms(*self.client, size, now_ms), now_ms)

    def mutation_quota(self, is_strict: bool) -> ControllerMutationQuota:
        """The quota of one request for controller mutations."""
        return self.managers.controller_mutation.quota_for(*self.client, is_strict)

    def response(self, api_key: int, size: int, now_ms: int) -> int:
        """Charge for a response and its request, and throttle the client. Returns the throttle time in ms."""
        longest = self.time(now_ms)
        if api_key == PRODUCE:
            if self.produced:
                longest = longer(self.bytes(self.managers.produce, self.produced.popleft(), now_ms), longest)
        elif api_key in (FETCH, SHARE_FETCH):
            longest = longer(self.bytes(self.managers.fetch, size + LENGTH_BYTES, now_ms), longest)
        elif api_key in MUTATIONS and self.mutations:
            left_ms = self.mutations.popleft().throttle_ms(now_ms)
            longest = longer(Throttle(self.managers.controller_mutation, left_ms), longest)
        self.throttle(longest.manager, longest.time_ms, now_ms)
        return longest.time_ms

    def bytes(self, manager: ClientQuotaManager, size: int, now_ms: int) -> Throttle:
        """Charge for bytes."""
        return Throttle(manager, manager.record_and_throttle_ms(*self.client, size, now_ms))

    def time(self, now_ms: int) -> Throttle:
        """Charge for the time that the gateway has spent."""
        spent_ns, self.spent_ns = self.spent_ns, 0
        manager = self.managers.request
        return Throttle(manager, manager.record_ns_and_throttle_ms(*self.client, spent_ns, now_ms))

    def throttle(self, manager: ClientQuotaManager, throttle_ms: int, now_ms: int) -> None:
        """Do not read the client for some time, from now on; a longer time that runs already stays."""
        if throttle_ms <= 0 or (self.place is not None and self.place.end_ms >= now_ms + throttle_ms):
            return
        self.forget()
        self.throttled_by = manager
        self.state.client.hold(Pause.THROTTLED)
        self.place = manager.throttled(*self.client, throttle_ms, now_ms, on_end=self.released)
        self.quotas.throttled(self.state.identity, throttle_labels(manager, self.client), throttle_ms)

    def released(self) -> None:
        """The throttle time is over."""
        self.place = None
        self.state.client.release(Pause.THROTTLED)

    def forget(self) -> None:
        """The client is no longer in the queue of throttled ones."""
        if self.place is not None and self.throttled_by is not None:
            self.throttled_by.channels.discard(self.place)
            self.place = None

    def closed(self) -> None:
        """The pair has ended. Requests without a response are charged, too: the broker has them."""
        now_ms = self.now_ms()
        for size in self.produced:
            self.managers.produce.record_without_throttle(*self.client, size, now_ms)
        self.produced.clear()
        self.mutations.clear()
        self.forget()
