"""GetTelemetrySubscriptions and PushTelemetry of clients that are connected to brokers through the gateway.

The host's own dispatcher answers them, so that errors, limits and bounds are those of the host. Nothing here
may raise: a fault of telemetry closes at most the pair that asked.
"""

from __future__ import annotations

import logging
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, Final

from odradek.broker.dispatch.dispatcher import Answer, Dispatcher
from odradek.broker.dispatch.routes import CloseConnection
from odradek.broker.dispatch.throttling import Throttled
from odradek.gateway.pair_identity import PairIdentity
from odradek.metrics.metric import MetricRow, Metrics
from odradek.plugin.context import UNKNOWN, ConnectionContext
from odradek.telemetry.client_metrics_manager import ClientMetricsManager
from odradek.waiting.deferred import Deferred
from odradek.wire.api_names import api_name
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.push_telemetry import PushTelemetryRequest

log = logging.getLogger(__name__)

LENGTH_BYTES: Final = 4
ERROR_CODE: Final = struct.Struct(">h")
ERROR_CODE_AT: Final = 13
"""In a response of either API: after the length, the correlation id, no tags, and the throttle time."""
NO_NODE: Final = -1
"""The node of a pair that was opened on the bootstrap address."""
TELEMETRY: Final = (GetTelemetrySubscriptionsRequest.API_KEY, PushTelemetryRequest.API_KEY)
ANSWERS: Metrics[TelemetryAnswers] = Metrics("odradek.gateway.telemetry")
ANSWERS.counter(
    "answers", "{answer}", "Telemetry requests of clients that the gateway answered", by="api error"
)
CLOSED: Final = "CLOSED"
"""Counted like an error: the pair was closed instead of an answer."""


@dataclass(slots=True, eq=False)
class PairConnection(ConnectionContext):
    """The client's end of a pair, as the host knows its connections."""

    principal_source: str = "none"
    """How the gateway learned the principal: ``sasl``, ``tls`` or ``none``."""


@dataclass(slots=True, eq=False)
class AskingPair:
    """A pair that has asked for telemetry."""

    connection: PairConnection
    waiting: set[Deferred[Any]] = field(default_factory=set)
    """Answers that are not ready."""


class TelemetryAnswers:
    """Answers the requests of all pairs that are never forwarded."""

    def __init__(self, dispatcher: Dispatcher, telemetry: ClientMetricsManager) -> None:
        self.dispatcher = dispatcher
        self.telemetry = telemetry
        self.asking: dict[int, AskingPair] = {}
        """By `id` of the pair's identity, which lives until `closed`."""
        self.serial = count()
        self.answers: Counter[tuple[str, str]] = Counter()
        """By API key and error code, or `CLOSED`."""

    def answer(self, frame: bytes, peer: PairIdentity, done: Callable[[bytes], None]) -> None:
        """Answer one request frame, without its length.

        Args:
            frame: The request.
            peer: The client.
            done: Takes the response frame without its length, at once or later; an empty one closes the pair.
        """
        api_key = int.from_bytes(frame[:2])
        if peer.awaiting_sasl:
            self.answered(api_key, done, None)
            return
        try:
            asking = self.pair_of(peer)
            answer = self.dispatcher.answer(frame, 0, asking.connection)
        except (WireError, CloseConnection) as error:
            log.debug("closing a pair", extra={"address": peer.address, "why": str(error)})
            answer = None
        except Exception:
            log.exception("telemetry request failed, closing its pair", extra={"api_key": api_key})
            answer = None
        if isinstance(answer, Deferred):
            asking.waiting.add(answer)
            answer.when_done(partial(self.came, asking, answer, api_key, done))
        else:
            self.answered(api_key, done, answer)

    def came(
        self,
        asking: AskingPair,
        deferred: Deferred[Any],
        api_key: int,
        done: Callable[[bytes], None],
        answer: Answer | WireError,
    ) -> None:
        """A deferred answer is ready."""
        asking.waiting.discard(deferred)
        self.answered(api_key, done, answer)

    def answered(self, api_key: int, done: Callable[[bytes], None], answer: Answer | WireError) -> None:
        """Count an answer and give it to its pair; without a frame, the pair closes."""
        if isinstance(answer, Throttled):
            answer = answer.frame
        if answer is None or isinstance(answer, WireError | Deferred) or not answer:
            self.answers[api_name(api_key), CLOSED] += 1
            done(b"")
            return
        frame = bytes(answer)  # these responses have no records in files
        if api_key in TELEMETRY:
            (code,) = ERROR_CODE.unpack_from(frame, ERROR_CODE_AT)
            self.answers[api_name(api_key), ErrorCode(code).name] += 1
        done(frame[LENGTH_BYTES:])

    def pair_of(self, peer: PairIdentity) -> AskingPair:
        """The pair as the host knows it, with what its client has told about itself by now."""
        asking = self.asking.get(id(peer))
        node_id = NO_NODE if peer.node_id is None else peer.node_id
        if asking is not None:
            known = asking.connection
            if known.principal == peer.principal and known.node_id == node_id:
                return asking
        serial = next(self.serial)
        connection = PairConnection(
            connection_id=f"{peer.listener}-{peer.address}:{peer.port}-{serial}",
            listener_name=peer.listener,
            security_protocol=peer.security_protocol,
            client_address=peer.address,
            client_port=peer.port,
            node_id=node_id,
            principal=peer.principal,
            client_software_name=peer.software_name or UNKNOWN,
            client_software_version=peer.software_version or UNKNOWN,
            principal_source=peer.principal_source,
        )
        if asking is None:
            asking = self.asking[id(peer)] = AskingPair(connection)
        else:
            self.telemetry.connection_closed(asking.connection.connection_id)
            asking.connection = connection
        return asking

    def closed(self, peer: PairIdentity, in_order: bool) -> None:
        """The pair has ended: drop its answers, and the client instance that it created."""
        asking = self.asking.pop(id(peer), None)
        if asking is None:
            return
        for deferred in asking.waiting:
            deferred.lost()
        self.telemetry.connection_closed(asking.connection.connection_id, in_order)

    def silence(self, silent: bool) -> None:
        """Tell all clients to push nothing: no subscription applies, and a push that follows an older one is
        refused with UNKNOWN_SUBSCRIPTION_ID, so that its client asks again and falls silent.
        """
        self.telemetry.subscriptions.suspend(silent)

    def metric_rows(self) -> Iterator[MetricRow]:
        """The number of answers by API and error."""
        return ANSWERS.rows(self)
