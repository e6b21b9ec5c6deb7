"""One client connection and its upstream connection.

A pair knows no socket. Its two ends write, and stop reading; the owner tells the pair what was read and which
end has closed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from odradek.gateway.addresses import Addresses
from odradek.gateway.data_path import DataPath
from odradek.gateway.observation.observer import CloseCause
from odradek.gateway.pair_failure import Cause, PairFailure
from odradek.gateway.pair_identity import PairIdentity
from odradek.gateway.pair_state import RAW_TOKEN, End, PairState, nothing
from odradek.gateway.path_meter import REQUEST, RESPONSE, SAMPLED
from odradek.gateway.path_quotas import PathQuotas
from odradek.gateway.requests import Requests
from odradek.gateway.responses import Responses
from odradek.gateway.rewriting.rewriter import MalformedResponse
from odradek.gateway.sasl_watch import SaslWatch
from odradek.gateway.throttling.charged_pair import ChargedRequests, ChargedResponses
from odradek.gateway.throttling.pair_charges import PairCharges
from odradek.telemetry.goodbyes import AWAITED

log = logging.getLogger(__name__)

SIDES: Final[dict[Cause, CloseCause]] = {
    Cause.CLIENT: "client",
    Cause.CLIENT_RESET: "client",
    Cause.UPSTREAM: "broker",
    Cause.UPSTREAM_RESET: "broker",
    Cause.UPSTREAM_STUCK: "broker",
}
"""The side that closed a pair; the gateway for all other causes."""


class Pair:
    """One client connection and its upstream connection.

    Args:
        path: What all pairs share.
        addresses: Of the listener that the client is connected to.
        identity: The client.
        client: The client's end.
        upstream: The broker's end.
        failed: Called once if the pair itself decides that it must close. Everything that can be sent to the
            client has been written then.
    """

    __slots__ = ("charges", "failed", "is_closed", "requests", "responses", "state")

    def __init__(
        self,
        path: DataPath,
        addresses: Addresses,
        identity: PairIdentity,
        client: End,
        upstream: End,
        failed: Callable[[PairFailure], None],
    ) -> None:
        identity.awaiting_sasl = path.requires_sasl
        observer = path.observer
        self.state = PairState(
            path=path,
            addresses=addresses,
            identity=identity,
            client=client,
            upstream=upstream,
            sasl=SaslWatch(identity, path.subject_claim, path.login_refused),
            observer=None if observer is None else observer.opened(identity),
            answer_ready=self.answer_ready,
        )
        self.charges: PairCharges | None = None
        """None if no client has a quota."""
        self.requests, self.responses = self.directions(path.quotas)
        self.failed = failed
        self.is_closed = False
        path.meter.opened += 1

    def directions(self, quotas: PathQuotas | None) -> tuple[Requests, Responses]:
        """The two directions. They only look at quotas if there are any."""
        if quotas is None or not quotas.managers.is_enabled:
            return Requests(self.state), Responses(self.state)
        self.charges = PairCharges(quotas, self.state)
        return ChargedRequests(self.state, self.charges), ChargedResponses(self.state, self.charges)

    def from_client(self, chunk: bytes) -> None:
        """Take bytes of the client: pass them on, or answer them."""
        if self.is_closed:
            return
        path = self.state.path
        meter = path.meter
        meter.client_bytes += len(chunk)
        meter.chunks += 1
        read_ns = 0 if meter.chunks & SAMPLED else path.monotonic_ns()
        try:
            self.requests.feed(chunk)
        except Exception as error:  # noqa: BLE001  see `fail_with`
            self.fail_with(error)
        if read_ns:
            meter.added[REQUEST].add((path.monotonic_ns() - read_ns) / 1e9)

    def from_upstream(self, chunk: bytes) -> None:
        """Take bytes of the broker: pass them on, as they are or rewritten."""
        if self.is_closed:
            return
        path = self.state.path
        meter = path.meter
        meter.upstream_bytes += len(chunk)
        meter.chunks += 1
        read_ns = 0 if meter.chunks & SAMPLED else path.monotonic_ns()
        try:
            self.responses.feed(chunk)
        except Exception as error:  # noqa: BLE001  see `fail_with`
            self.fail_with(error)
        if read_ns:
            meter.added[RESPONSE].add((path.monotonic_ns() - read_ns) / 1e9)

    def answer_ready(self) -> None:
        """A local answer is ready."""
        if self.is_closed:
            return
        try:
            self.responses.answer_ready()
        except Exception as error:  # noqa: BLE001  see `fail_with`
            self.fail_with(error)

    def fail_with(self, error: Exception) -> None:
        """Close after an error. A bug closes the pair, too: passing the bytes on could leak an address."""
        if isinstance(error, PairFailure):
            self.fail(error)
        elif isinstance(error, MalformedResponse):
            self.fail(PairFailure(Cause.MALFORMED_RESPONSE, str(error)))
        else:
            key = self.responses.key
            log.error("a pair failed", exc_info=error, extra={"response_api_key": key})
            self.state.path.meter.internal_errors[key] += 1
            self.state.path.on_internal_error(key)
            self.fail(PairFailure(Cause.INTERNAL_ERROR, type(error).__name__))

    def fail(self, failure: PairFailure) -> None:
        """Close because of the bytes that passed."""
        if self.is_closed:
            return
        self.responses.flush()
        self.close(failure.cause)
        self.failed(failure)

    def close(self, cause: Cause) -> None:
        """The pair has ended, once."""
        if self.is_closed:
            return
        self.is_closed = True
        state = self.state
        state.path.meter.closed[cause] += 1
        if SIDES.get(cause) == "broker" and state.outstanding and state.outstanding[0][1][3] is RAW_TOKEN:
            state.sasl.fail()  # a broker answers a token without a header by closing
        outstanding = [burst[0] for _, burst in state.outstanding]
        # A client that closes while it is being answered resets the connection, without more.
        is_cut = cause is Cause.CLIENT_RESET or self.requests.skip or self.requests.partial
        waits = bool(is_cut) and self.requests.burst[0] in AWAITED
        in_order = SIDES.get(cause) == "client" and not waits and AWAITED.isdisjoint(outstanding)
        if state.observer is not None:
            state.observer.closed(SIDES.get(cause, "gateway"), outstanding, in_order)
            state.observer = None  # a burst may go on that has closed the pair
        if state.path.answers is not None:
            state.path.answers.closed(state.identity, in_order)
        if self.charges is not None:
            self.charges.closed()
        state.outstanding.clear()
        state.answer_ready = nothing

    @property
    def last_active_ns(self) -> int:
        """When the last frame began or ended, monotonic; 0 before the first one."""
        return max(self.requests.now_ns, self.responses.now_ns)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is outstanding and no frame is incomplete, in both directions."""
        requests, responses = self.requests, self.responses
        return not (
            self.state.outstanding or requests.skip or requests.partial or responses.rest or responses.partial
        )
