"""What a test says to a host that runs, and asks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar, get_args

from odradek.broker.client_quotas import CLIENT_KEYS, IP_KEYS, Alteration
from odradek.broker.dispatch.routing import load_handlers
from odradek.clock import SystemClock
from odradek.plugin.client_quota import ABSENT, ClientQuotaEntity, Name
from odradek.server.host import Host
from odradek.telemetry import client_metrics_configs
from odradek.telemetry.instance_match import SELECTORS
from odradek.testing.arrivals import Arrivals
from odradek.testing.fault import GARBAGE, Drop, Fault, error_code, meant
from odradek.testing.host_thread import HostThread
from odradek.testing.host_topics import HostTopics
from odradek.testing.request_log import RequestLog
from odradek.testing.telemetry_log import TelemetryLog
from odradek.testing.virtual_clock import VirtualClock
from odradek.testing.watched_dispatcher import WatchedDispatcher, api_name
from odradek.wire.config_resource import ResourceType
from odradek.wire.error_code import ErrorCode

NEWEST = 10
"""Pushes that a message about a missing one lists."""
Result = TypeVar("Result")


class RunningHost:
    """A host that takes connections in a thread of its own. Everything here may be called in any thread.

    What waits (`telemetry`, `requests`, `Fault.wait`) blocks the caller: in a coroutine use
    ``asyncio.to_thread``.
    """

    thread: HostThread

    def __init__(self, clock: VirtualClock | None = None) -> None:
        self.virtual_clock = clock
        self.arrivals = Arrivals()
        self.arrivals.explain = self.what_came
        self.requests = RequestLog(self.arrivals)
        """The newest requests of all clients."""
        self.telemetry = TelemetryLog(self.arrivals, SystemClock().now_ms if clock is None else None)
        """What clients pushed."""
        self.topics = HostTopics(lambda: self.thread)
        self.dispatcher: WatchedDispatcher

    def watch(self, host: Host) -> None:
        """Stand around the handlers of a host that has not started."""
        self.dispatcher = WatchedDispatcher(host.broker, load_handlers(), self.requests, self.telemetry)
        self.requests.apis = {api_name(route.request) for route in self.dispatcher.routes.values()}
        host.dispatcher = self.dispatcher
        for listener in host.listeners:
            listener.dispatcher = self.dispatcher
        host.receivers.register("odradek.testing", self.telemetry)
        if self.virtual_clock is not None:
            self.virtual_clock.drive(self.thread)

    @property
    def bootstrap(self) -> str:
        """What a client's ``bootstrap.servers`` takes."""
        return self.thread.bootstrap

    @property
    def address(self) -> tuple[str, int]:
        """The same for a socket."""
        return self.thread.address

    @property
    def host(self) -> Host:
        """The host itself, for what has no word here; touch it by `call` only."""
        return self.thread.host

    @property
    def clock(self) -> VirtualClock:
        """The clock it was started with.

        Raises:
            RuntimeError: It runs by the machine's clock.
        """
        if self.virtual_clock is None:
            raise RuntimeError(
                "this host has the machine's clock: start it with odradek.testing.host(clock=VirtualClock())"
            )
        return self.virtual_clock

    def call(self, function: Callable[[], Result]) -> Result:
        """Run something on the host's loop, and return what it returns."""
        return self.thread.call(function)

    # Orders

    def subscribe(
        self,
        prefixes: str | Sequence[str] = "*",
        interval_ms: int = 100,
        match: Mapping[str, str] | None = None,
        name: str = "test",
    ) -> None:
        """Ask clients for metrics, from their next GetTelemetrySubscriptions on.

        A client that was told to push nothing asks again after five minutes only: subscribe before it starts.

        Args:
            prefixes: Of metric names; ``*`` is all. librdkafka and Java know ``*``, franz-go does not.
            interval_ms: Between two pushes, 100 at least. Clients take 0.5 to 1.5 times that for their first.
            match: Whom to ask: selectors (``client_id``, ``client_software_name`` ...), regular expressions.
            name: A second subscription of the same name replaces the first.

        Raises:
            ApiError: INVALID_REQUEST or INVALID_CONFIG, as for an operator.
            ValueError: There is no such selector.
        """
        for selector in match or ():
            if selector not in SELECTORS:
                raise ValueError(f"no selector {selector!r}{meant(selector, SELECTORS)}")
        metrics = [prefixes] if isinstance(prefixes, str) else prefixes
        properties = {"metrics": ",".join(metrics), "interval.ms": str(interval_ms)}
        if match:
            properties["match"] = ",".join(f"{key}={value}" for key, value in match.items())
        self.call(lambda: self.put_subscription(name, properties))

    def unsubscribe(self, name: str = "test") -> None:
        """Ask for nothing any more."""
        self.call(lambda: self.put_subscription(name, {}))

    def put_subscription(self, name: str, properties: Mapping[str, str]) -> None:
        client_metrics_configs.validate(name, properties)
        self.host.metadata.put_resource(ResourceType.CLIENT_METRICS, name, properties)
        self.host.telemetry.update_subscription(name, properties)

    def quota(
        self,
        *,
        user: Name = ABSENT,
        client_id: Name = ABSENT,
        ip: Name = ABSENT,
        **values: float | None,
    ) -> None:
        """Set or lift quotas of a user, a client id, both together, or an address, as an operator does.

        A name that is None means all that have no quota of their own.

        Args:
            user: The name of the principal; ``ANONYMOUS`` without authentication.
            client_id: As clients call themselves.
            ip: An address, for ``connection_creation_rate``.
            values: ``producer_byte_rate``, ``consumer_byte_rate``, ``request_percentage``,
                ``controller_mutation_rate``; None lifts one.

        Raises:
            ValueError: Nobody is named, or no quota, or one that there is not.
            ApiError: INVALID_REQUEST: the name or the value cannot be.
        """
        names = ClientQuotaEntity(user=user, client_id=client_id, ip=ip).names()
        if not names:
            raise ValueError("whose quota? name a user, a client_id or an ip")
        known = CLIENT_KEYS if ip is ABSENT else IP_KEYS
        if not values:
            raise ValueError(f"which quota? one of {', '.join(known)}")
        for key in values:
            if key not in known:
                raise ValueError(f"no quota is called {key!r}{meant(key, known)}")
        alteration = Alteration(names, list(values.items()))
        for refusal in self.call(lambda: self.host.broker.client_quotas.alter([alteration])).values():
            if refusal is not None:
                raise refusal

    def fault(
        self,
        api: str,
        *,
        client_id: str | None = None,
        times: int | None = 1,
        error: ErrorCode | str | int | None = None,
        delay_ms: int = 0,
        drop: Drop | None = None,
        throttle_ms: int = 0,
        garbage: bool | bytes = False,
    ) -> Fault:
        """Do wrong for the next requests of an API. Of several faults that are meant, the oldest hits.

        Args:
            api: As Kafka calls it: ``PushTelemetry``.
            client_id: Whose requests, a pattern with ``*`` too; None for all.
            times: How many of them; None for all until `Fault.remove`.
            error: Answer with this error, by name or number; the request has no other effect.
            delay_ms: Answer so much later, by the host's clock.
            drop: Close the connection: ``before`` the request has an effect, or ``after`` that.
            throttle_ms: Say in the answer that the client was throttled for so long.
            garbage: Answer with bytes that make no sense, or with these.

        Raises:
            ValueError: The API or the error is not known, nothing is to be done wrong, or it cannot be.
        """
        self.requests.refuse_unknown(api)
        if times is not None and times < 1:
            raise ValueError(f"times={times}: 1 at least, or None for all")
        if drop is not None and drop not in get_args(Drop):
            raise ValueError(f"drop={drop!r}{meant(drop, get_args(Drop))}")
        for name, value_ms in (("delay_ms", delay_ms), ("throttle_ms", throttle_ms)):
            if value_ms < 0:
                raise ValueError(f"{name}={value_ms}: less than nothing")
        if error is None and not (delay_ms or drop or throttle_ms or garbage):
            raise ValueError("what is to go wrong? give error, delay_ms, drop, throttle_ms or garbage")
        fault = Fault(
            api=api,
            arrivals=self.arrivals,
            client_id=client_id,
            times=times,
            error=None if error is None else error_code(error),
            delay_ms=delay_ms,
            drop=drop,
            throttle_ms=throttle_ms,
            garbage=GARBAGE if garbage is True else garbage or None,
        )
        self.call(lambda: self.dispatcher.faults.append(fault))
        return fault

    # Explanations

    def what_came(self) -> Iterator[str]:
        """What a test should know that waited in vain."""
        stored = self.host.telemetry.subscriptions.by_name
        yield "subscriptions:" if stored else "subscriptions: none, so clients have nothing to push"
        for name, info in stored.items():
            match = f" match={dict(info.match_pattern)}" if info.match_pattern else ""
            yield f"  {name}: metrics={','.join(info.metrics)} interval.ms={info.interval_ms}{match}"
        clients = list(self.requests.summary())
        yield "clients:" if clients else f"clients: none has connected to {self.bootstrap}"
        yield from (f"  {line}" for line in clients)
        for client_id, interval_ms in self.telemetry.told_nothing():
            told = f"{client_id} was told to push nothing, and asks again after {interval_ms / 1000:g} s"
            yield f"  {told}: subscribe before it starts"
        pushes = self.telemetry.pushes
        yield f"pushes: {len(pushes)}" + (f", the newest {NEWEST}:" if len(pushes) > NEWEST else "")
        yield from (f"  {push}" for push in pushes[-NEWEST:])
        names = sorted({name for push in pushes for name in push.metrics})
        if names:
            yield "metrics that came:"
            yield from (f"  {name}" for name in names)
        if self.dispatcher.faults:
            yield "faults:"
            yield from (f"  {fault}" for fault in self.dispatcher.faults)
