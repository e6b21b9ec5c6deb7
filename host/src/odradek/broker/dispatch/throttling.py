"""The cost of a request and the throttling that follows: the one place where quotas meet requests.

After KafkaApis, RequestHandlerHelper and QuotaManagers of Kafka 4.3. A request is charged once its response
is known. The response is sent at once and tells the client how long it is throttled; its channel is muted for
that time. If several quotas throttle one request, only the longest throttle applies.

Each route has a `Charge`; most are charged for their time. A handler whose response depends on the charge
returns a `Draft` or a `Mutated`, but only while ``quotas.is_enabled``.

A node that is both broker and controller forwards nothing, so Kafka's rules for forwarded requests (the
controller computes, the broker mutes) do not apply.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

from odradek.broker.answering import Answering
from odradek.findings.incidents import THROTTLED
from odradek.plugin.client_quota import ClientQuotaType
from odradek.plugin.context import RequestContext
from odradek.quota.client_quota_manager import ClientQuotaManager
from odradek.quota.controller_mutation_quota import UNBOUNDED_QUOTA, ControllerMutationQuota
from odradek.quota.quota_managers import QuotaManagers
from odradek.quota.throttled_channels import ThrottledChannel
from odradek.telemetry.client_key import key_of_request
from odradek.telemetry.incidents import Incidents
from odradek.wire.api_names import api_name
from odradek.wire.limits import INT32_MAX
from odradek.wire.parts import Parts

RESPONSE_SIZE_BYTES = 4
"""The length in front of a response; Kafka counts it with a fetch's."""
ANONYMOUS = "User:ANONYMOUS"
"""KafkaPrincipal.ANONYMOUS: a client that has not authenticated."""
QUOTA_KEYS: Final = {
    ClientQuotaType.PRODUCE: "producer_byte_rate",
    ClientQuotaType.FETCH: "consumer_byte_rate",
    ClientQuotaType.REQUEST: "request_percentage",
    ClientQuotaType.CONTROLLER_MUTATION: "controller_mutation_rate",
}
"""The keys of quotas, by what they limit."""
R = TypeVar("R")


class Throttle(NamedTuple):
    """The throttle time, and the manager that counts it."""

    manager: ClientQuotaManager
    time_ms: int


@dataclass(slots=True, eq=False, kw_only=True)
class SpentTime:
    """The time that the parts of some work took."""

    monotonic_ns: Callable[[], int]
    spent_ns: int = 0

    def timed(self, run: Callable[[], R]) -> R:
        """Run a part and add its time."""
        started_ns = self.monotonic_ns()
        try:
            return run()
        finally:
            self.spent_ns += self.monotonic_ns() - started_ns


@dataclass(slots=True, eq=False, kw_only=True)
class Exchange(SpentTime):
    """A request and its response, as the quotas see them."""

    context: RequestContext
    request: Any
    request_bytes: int
    """Header and body."""
    write: Callable[[Any], bytes | Parts]
    """Encodes the response."""
    now_ms: int = 0
    """The monotonic time of all charges of this exchange."""
    response: Any = None
    """None if there is none, also because the connection closes."""
    body: bytes | Parts | None = None
    """The encoded response, if its size was needed."""
    network: Callable[[int], None] | None = None
    """Records the nanoseconds that writing the response took; they alone never throttle a client."""

    @property
    def client(self) -> tuple[str, str | None]:
        """User and client id."""
        return client_of(self.context)


Charge = Callable[[Exchange, QuotaManagers], Throttle]
"""Records the cost of an exchange; may replace its response."""


@dataclass(slots=True, eq=False)
class Throttled:
    """An answer after which the channel is muted for a while."""

    frame: bytes | Parts | None
    """None where the protocol has no answer."""
    throttle: Throttle
    client: tuple[str, str | None]
    """User and client id."""
    charged_ms: int
    """The throttle time starts here."""
    place: ThrottledChannel | None = None

    def begin(self, on_end: Callable[[], None]) -> None:
        """Count the client as throttled; ``on_end`` is called once the channel may be read again."""
        manager, time_ms = self.throttle
        self.place = manager.throttled(*self.client, time_ms, self.charged_ms, on_end=on_end)

    def lost(self) -> None:
        """The connection is gone: its client is no longer throttled."""
        if self.place is not None:
            self.throttle.manager.channels.discard(self.place)
            self.place = None


def client_of(context: RequestContext) -> tuple[str, str | None]:
    """User and client id, as quotas tell them apart."""
    return context.connection.principal.partition(":")[2], context.client_id


def charge_time(exchange: Exchange, quotas: QuotaManagers) -> Throttle:
    """Charge for the handler's time, as for every client request."""
    manager, (user, client_id), now_ms = quotas.request, exchange.client, exchange.now_ms
    exchange.network = lambda spent_ns: manager.record_network_ns(user, client_id, spent_ns, now_ms)
    return Throttle(manager, manager.record_ns_and_throttle_ms(user, client_id, exchange.spent_ns, now_ms))


def charge_exempt(exchange: Exchange, quotas: QuotaManagers) -> Throttle:
    """Measure the time of a request without throttling its client."""
    manager, now_ms = quotas.request, exchange.now_ms
    exchange.network = lambda spent_ns: manager.record_exempt_ns(spent_ns, now_ms)
    manager.record_exempt_ns(exchange.spent_ns, now_ms)
    return Throttle(manager, 0)


def charge_nothing(_exchange: Exchange, quotas: QuotaManagers) -> Throttle:
    """Free: the authentication, whose client is not known yet."""
    return Throttle(quotas.request, 0)


def charge_if_known(exchange: Exchange, quotas: QuotaManagers) -> Throttle:
    """Charge for the time, except a client that has not authenticated yet: its user is not known, and the
    quota of ANONYMOUS on other listeners must not delay its login.
    """
    connection = exchange.context.connection
    at_the_gate = connection.security_protocol.startswith("SASL_") and connection.principal == ANONYMOUS
    return (charge_nothing if at_the_gate else charge_time)(exchange, quotas)


def throttle_labels(manager: ClientQuotaManager, client: tuple[str, str | None]) -> dict[str, str]:
    """The quota that has throttled a client, as operators set it."""
    tags = manager.tags(*client)
    return {
        "quota": QUOTA_KEYS[manager.quota_type],
        "entity": ", ".join(f"{kind} {name}" for kind, name in tags.items() if name),
        "limit": f"{manager.limit(*client):.15g}",
    }


def tell_throttle(incidents: Incidents | None, context: RequestContext, throttle: Throttle) -> None:
    """Tell that a quota holds a client back."""
    if incidents is not None:
        labels = {"api": api_name(context.api_key), **throttle_labels(throttle.manager, client_of(context))}
        connection_id = context.connection.connection_id
        incidents.lasts(key_of_request(context), THROTTLED, labels, throttle.time_ms, connection_id)


def longer(own: Throttle, time: Throttle) -> Throttle:
    """The longer throttle; the one for time if both are equal."""
    return own if own.time_ms > time.time_ms else time


def charge_produce(exchange: Exchange, quotas: QuotaManagers) -> Throttle:
    """Charge for the bytes of the request, even if it fails. With acks=0 its time is exempt."""
    time_ms = quotas.produce.record_and_throttle_ms(*exchange.client, exchange.request_bytes, exchange.now_ms)
    bandwidth = Throttle(quotas.produce, time_ms)
    charge = charge_exempt if exchange.request.acks == 0 else charge_time
    return longer(bandwidth, charge(exchange, quotas))


class Draft(NamedTuple):
    """A Fetch response that takes effect only if it is sent."""

    response: Any
    """A response of the same size as the final one."""
    settle: Callable[[], Any]
    """Makes the response that is sent, and remembers what the client knows from it."""
    throttled: Callable[[], Any]
    """Makes the empty response for a throttled client."""


def charge_fetch(exchange: Exchange, quotas: QuotaManagers) -> Throttle:
    """Charge for the time, then for the bytes of the response.

    A throttled client gets an empty response and is not charged for its bytes, even if only the request-time
    quota was exceeded.
    """
    time = charge_time(exchange, quotas)
    draft = exchange.response
    if not isinstance(draft, Draft):  # the response is an error
        return time
    client, now_ms, size = exchange.client, exchange.now_ms, 0
    if quotas.fetch.is_enabled:
        exchange.body = exchange.write(draft.response)
        size = len(exchange.body) + RESPONSE_SIZE_BYTES
    bandwidth = Throttle(quotas.fetch, quotas.fetch.record_and_throttle_ms(*client, size, now_ms))
    throttle = longer(bandwidth, time)
    if throttle.time_ms:
        quotas.fetch.unrecord(*client, size, now_ms)
        exchange.response, exchange.body = draft.throttled(), None
        return throttle
    exchange.response = draft.settle()
    if exchange.response.session_id != draft.response.session_id:
        exchange.body = None
    return throttle


def fetch_limit_bytes(context: RequestContext, broker: Answering) -> int:
    """The most bytes for one fetch: no more than the client's quota grants in all windows."""
    limit = broker.settings.fetch_max_bytes
    if broker.quotas.fetch.is_enabled:
        limit = int(min(limit, broker.quotas.fetch.max_value_in_quota_window(*client_of(context)), INT32_MAX))
    return limit


class Mutated(NamedTuple):
    """A response with the quota that was applied to its topics."""

    response: Any
    quota: ControllerMutationQuota


def mutation_quota(context: RequestContext, broker: Answering, strict_from: int) -> ControllerMutationQuota:
    """The quota that applies to the topics of one request.

    Args:
        context: The request.
        broker: Its quotas.
        strict_from: The first version whose clients know THROTTLING_QUOTA_EXCEEDED; older ones are throttled,
            but never refused.
    """
    manager = broker.quotas.controller_mutation
    return manager.quota_for(*client_of(context), context.api_version >= strict_from)


def mutated(response: R, quota: ControllerMutationQuota) -> R | Mutated:
    """The response for the dispatcher, with the quota if there is one."""
    return response if quota is UNBOUNDED_QUOTA else Mutated(response, quota)


def charge_mutations(exchange: Exchange, quotas: QuotaManagers) -> Throttle:
    """Charge for the time. The handler has already charged the topics."""
    time = charge_time(exchange, quotas)
    if not isinstance(exchange.response, Mutated):
        return time
    exchange.response, quota = exchange.response
    return longer(Throttle(quotas.controller_mutation, quota.throttle_ms(exchange.now_ms)), time)
