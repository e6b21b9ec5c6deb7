"""The state that the listeners and pairs of one gateway share."""

from __future__ import annotations

import logging
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from odradek.bounds.sampled_log import SampledLog
from odradek.bounds.small_file import read_small_file
from odradek.gateway.addresses import NodeTable, UnmappedNodes
from odradek.gateway.addressing_settings import NODES, nodes_text
from odradek.gateway.data_path import DataPath, PathLimits
from odradek.gateway.gateway_settings import GatewaySettings
from odradek.gateway.observation.observer import Observer
from odradek.gateway.path_meter import PathMeter
from odradek.gateway.path_quotas import PathQuotas
from odradek.gateway.reachability import Reachability
from odradek.gateway.rewriting.api_versions import ApiPolicy
from odradek.gateway.sasl_watch import LoginRefused, nobody_asks
from odradek.gateway.switch import OPAQUE_FETCH_VERSION, STEPS, Switch
from odradek.gateway.telemetry_answers import TelemetryAnswers
from odradek.net.pairs.dialer import Address, Dialer
from odradek.net.pairs.pair_bytes import PairBytes
from odradek.net.pairs.routing import Routing
from odradek.net.pairs.standstills import Standstills
from odradek.plugin.config import ConfigError
from odradek.waiting.clock import Clock, Timer
from odradek.wire.messages.fetch import FetchResponse

log = logging.getLogger(__name__)

SWITCH_MS = 1000
"""How often the file of the kill switch is read."""
SWITCH_BYTES = 64
FETCH_FAULTS, FETCH_FAULTS_MS = 3, 60_000
"""After so many bugs in this time, Fetch is offered only up to a version without addresses."""


class Pairs:
    """The shared state of the listeners and pairs of one gateway.

    Args:
        settings: How it works.
        limits: The bounds of its data path.
        routings: Decides for each listener, by its name, how clients choose a node; called once.
        upstream: The brokers of the bootstrap list.
        tls: Encrypts connections to brokers; None for a cluster without TLS.
        requires_sasl: The brokers' listener has SASL.
        subject_claim: The name of a client in its OAUTHBEARER token.
        clock: The time.
        memory: Of all pairs.
        standstills: The pairs that may stand still.
        quotas: Charge the pairs; None if there are none.
        answers: The gateway's own telemetry; None without it.
        silence: Tells the clients of the gateway's own telemetry to push nothing, or ends that.
        observer: Observes the pairs that open from now on.
        login_refused: See `DataPath.login_refused`.
        refresh: Asks for the nodes again; see `Dialer`.

    Raises:
        ConfigError: The settings of the addresses contradict each other.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        limits: PathLimits,
        routings: Callable[[NodeTable, UnmappedNodes], Mapping[str, Routing]],
        upstream: Sequence[Address],
        tls: ssl.SSLContext | None,
        requires_sasl: bool,
        subject_claim: str,
        clock: Clock,
        memory: PairBytes,
        standstills: Standstills,
        quotas: PathQuotas | None = None,
        answers: TelemetryAnswers | None = None,
        silence: Callable[[bool], None] = lambda _silent: None,
        observer: Observer | None = None,
        login_refused: LoginRefused = nobody_asks,
        refresh: Callable[[], None] = lambda: None,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.memory = memory
        self.standstills = standstills
        self.reachability = Reachability()
        self.table = NodeTable()
        self.dialer = Dialer(
            upstream, self.table, tls, settings.dial_timeout_ms / 1000, clock, self.reachability, refresh
        )
        self.unmapped = UnmappedNodes(on_first=self.first_unmapped, bypass=settings.bypass_unmapped)
        """Shared by the addresses of all listeners."""
        self.routings = routings(self.table, self.unmapped)
        self.slow_peers = 0
        """How often a connection was not read because the other one of its pair is slow."""
        self.switch = Switch()
        self.step = self.switch.step
        """The step that was taken last."""
        self.followed = ""
        """The last content of the file: a step that SIGUSR1 has taken stays until the file changes."""
        self.answers = answers
        self.observer = observer
        self.silence = silence
        self.switch_log = SampledLog(log)
        self.unmapped_log = SampledLog(log)
        self.fetch_faults: deque[int] = deque(maxlen=FETCH_FAULTS)
        """Times of the last bugs in rewriting Fetch, monotonic ms."""
        self.caps_fetch = False
        self.path = DataPath(
            monotonic_ns=time.monotonic_ns,
            limits=limits,
            meter=PathMeter(),
            policy=self.policy(),
            answers=answers if settings.telemetry == "own" else None,
            observer=observer,
            quotas=quotas,
            requires_sasl=requires_sasl,
            subject_claim=subject_claim,
            login_refused=login_refused,
            on_internal_error=self.internal_error,
        )

    def policy(self) -> ApiPolicy:
        """The APIs that clients are offered, at the present position of the switch."""
        settings, switch = self.settings, self.switch
        telemetry = settings.telemetry
        if telemetry == "own" and (self.answers is None or not switch.has_telemetry):
            telemetry = "off"
        most_fetch = settings.fetch_max_version
        if self.caps_fetch or switch.rewrites_least:
            most_fetch = min(most_fetch, OPAQUE_FETCH_VERSION)
        return ApiPolicy(
            telemetry=telemetry,
            own_resources=settings.own_telemetry.own_resources and telemetry == "own",
            unknown_apis=settings.unknown_apis,
            fetch_max_version=most_fetch,
            hide_quorum=settings.hide_quorum,
        )

    def check_nodes(self, node_ids: Iterable[int]) -> None:
        """Check that each broker of the cluster has an address for clients.

        Raises:
            ConfigError: One has none.
        """
        nodes = self.settings.addressing.mapped
        missing = sorted(node_id for node_id in node_ids if nodes.place(node_id) is None)
        if missing and not self.settings.bypass_unmapped:
            found, known = ", ".join(map(str, missing)), nodes_text(nodes)
            raise ConfigError(NODES, f"the cluster has brokers with the ids {found}, which {known} lacks")

    def learned(self, node_id: int, host: str, port: int) -> None:
        """Take note of a broker that the cluster itself has named."""
        is_mapped = self.settings.addressing.mapped.place(node_id) is not None
        if not is_mapped:
            self.unmapped.note(node_id)
        if is_mapped or self.settings.bypass_unmapped:
            self.table.learned(node_id, host, port)

    def internal_error(self, api_key: int) -> None:
        """A bug has closed a pair. Bugs in the walk through Fetch end with an older version of it."""
        if api_key != FetchResponse.API_KEY or self.caps_fetch:
            return
        now_ms = self.clock.monotonic_ms()
        self.fetch_faults.append(now_ms)
        if len(self.fetch_faults) == FETCH_FAULTS and now_ms - self.fetch_faults[0] <= FETCH_FAULTS_MS:
            self.caps_fetch = True
            log.error("Fetch is limited for new connections", extra={"version": OPAQUE_FETCH_VERSION})
            self.path.policy = self.policy()

    def step_down(self) -> None:
        """Take the next step of the kill switch."""
        if self.switch.down():
            self.switched()

    def follow_file(self, path: Path, timer: Timer) -> None:
        """Take the step that a file names, now and each second. A file that is missing changes nothing."""
        now_ms = self.clock.monotonic_ms()
        problem, text = "", self.followed
        try:
            text = read_small_file(path, SWITCH_BYTES).decode("ascii", "replace").strip()
        except (FileNotFoundError, NotADirectoryError):
            text = ""
        except OSError as error:
            problem = error.strerror or str(error)
        if text and text not in STEPS:
            problem = f"no such step; there are {', '.join(STEPS)}"
        elif text != self.followed and self.switch.set(text):
            self.switched()
        if problem:
            self.switch_log.write(
                logging.ERROR, now_ms, "the kill switch cannot be followed", file=str(path), problem=problem
            )
        self.followed = text
        timer.schedule(now_ms + SWITCH_MS, lambda: self.follow_file(path, timer))

    def switched(self) -> None:
        """Follow the switch. Open pairs keep their observers."""
        if self.switch.step != self.step:
            self.step = self.switch.step
            log.warning("kill switch", extra={"step": self.step})
            self.silence(not self.switch.has_telemetry)
        self.path.answers = self.answers if self.settings.telemetry == "own" else None
        self.path.observer = self.observer if self.switch.observes else None
        self.path.policy = self.policy()

    def first_unmapped(self, node_id: int) -> None:
        """The cluster has a broker with an id outside every range."""
        problem = "a broker has no address here: "
        if self.settings.bypass_unmapped:
            level, problem = logging.WARNING, problem + "clients dial it directly"
        else:
            level = logging.ERROR
            problem += "clients cannot use its partitions until gateway.nodes has its id"
        self.unmapped_log.write(level, self.clock.monotonic_ms(), problem, node=node_id)
        self.dialer.refresh()
