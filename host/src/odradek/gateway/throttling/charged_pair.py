"""The two directions of a pair whose client has quotas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from odradek.gateway.pair_failure import Cause, PairFailure
from odradek.gateway.pair_state import Burst, LocalAnswer, PairState
from odradek.gateway.request_heads import Head, unpack_int32
from odradek.gateway.requests import Requests
from odradek.gateway.responses import Responses
from odradek.gateway.rewriting.addressed_layout import ResponseApi, See, unseen
from odradek.gateway.rewriting.rewriter import Rewriter
from odradek.gateway.throttling.mutations import MUTATIONS, mutation
from odradek.gateway.throttling.pair_charges import NS_PER_MS, PairCharges
from odradek.gateway.throttling.throttle_place import throttle_reader
from odradek.gateway.throttling.throttle_writer import Unchanged, with_throttle_time
from odradek.wire.api_error import ApiError


class ChargedRequests(Requests):
    """The direction from the client to the broker."""

    __slots__ = ("charges",)

    def __init__(self, state: PairState, charges: PairCharges) -> None:
        super().__init__(state)
        self.charges = charges

    def feed(self, data: bytes) -> None:
        started_ns = self.state.path.monotonic_ns()
        super().feed(data)
        self.charges.spent_ns += self.state.path.monotonic_ns() - started_ns

    def take_produce(self, head: Head, data: bytes, pos: int, end: int) -> int:
        return self.note_sizes(data, pos, super().take_produce(head, data, pos, end))

    def note_sizes(self, data: bytes, pos: int, after: int) -> int:
        """Note the size of each Produce request up to an offset, which is returned."""
        note = self.charges.produced.append if self.beginning.acks else self.charges.silent_produce
        while pos < after:
            (size,) = unpack_int32(data, pos)
            note(size)
            pos += 4 + size
        return after

    def mutate(self, data: bytes, pos: int, head: Head) -> int:
        """Count the partitions that a request creates or deletes; refuse it if the quota is used up."""
        size, key, version, correlation_id = head
        most = self.state.path.limits.hold.response_bytes
        if size > most:
            why = f"a request of {size} bytes to change topics; with a quota the limit is {most}"
            raise PairFailure(Cause.BAD_REQUEST, why)
        if len(data) - pos < 4 + size:
            return 4 + size
        request = mutation(key, version, data[pos : pos + 4 + size])
        api = MUTATIONS[key]
        quota = self.charges.mutation_quota(version >= api.strict_from)
        try:
            if request is not None:
                quota.record(api.count(request))
        except ApiError:
            now_ms = self.charges.now_ms()
            throttle_ms = quota.throttle_ms(now_ms)
            self.charges.throttle(self.charges.managers.controller_mutation, throttle_ms, now_ms)
            frame = self.charges.quotas.refusal(request, version, correlation_id, throttle_ms)
            self.takes(data, pos, head, LocalAnswer(frame))
            self.state.answer_ready()
            return 0
        self.charges.mutations.append(quota)
        return self.passes(head)

    def answered(self, answer: LocalAnswer, head: Head, frame: bytes) -> None:
        """An answer of the gateway's host is ready; the host has charged for it."""
        if frame:
            response: Any = self.charges.quotas.responses[head[1]]
            throttle_ms = throttle_reader(response, head[2])(frame)
            self.charges.throttle(self.charges.managers.request, throttle_ms, self.charges.now_ms())
        super().answered(answer, head, frame)


ChargedRequests.SPECIAL = {
    **Requests.SPECIAL,
    **dict.fromkeys(MUTATIONS, ChargedRequests.mutate),
}


class ChargedApi:
    """Any API: each response is charged before it passes."""

    def see(self, _version: int) -> See:
        """Looks at no response."""
        return unseen


class EveryApi(dict[int, ChargedApi]):
    """Has an entry for every API."""

    def get(self, _api_key: int, _default: object = None) -> ChargedApi:
        return CHARGED


CHARGED: Final = ChargedApi()


class ChargedResponses(Responses):
    """The direction from the broker to the client."""

    __slots__ = ("charges",)

    ADDRESSED: ClassVar[Mapping[int, ResponseApi]] = EveryApi()

    def __init__(self, state: PairState, charges: PairCharges) -> None:
        super().__init__(state)
        self.charges = charges

    def feed(self, data: bytes) -> None:
        started_ns = self.state.path.monotonic_ns()
        super().feed(data)
        self.charges.spent_ns += self.state.path.monotonic_ns() - started_ns

    def rewriter_of(self, burst: Burst, size: int) -> Rewriter:
        """The rewriter of a response, which also writes the throttle time if there is one."""
        inner = super().rewriter_of(burst, size) or Unchanged(size)
        key, version, _, _ = burst
        throttle_ms = self.charges.response(key, size, self.now_ns // NS_PER_MS)
        if throttle_ms <= 0:
            return inner
        return with_throttle_time(self.charges.quotas.response(key), version, inner, throttle_ms)
