"""A dispatcher needs these parts in every program: for all requests of a host, and the few of a gateway."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from odradek.broker.audit import Audit
from odradek.broker.authorization import Authorization
from odradek.broker.broker_settings import BrokerSettings
from odradek.metadata.store import MetadataStore
from odradek.quota.quota_managers import QuotaManagers
from odradek.settings.state_limit import NameLimit
from odradek.telemetry.accepted_push import AcceptedPush
from odradek.telemetry.client_metrics_manager import ClientMetricsManager
from odradek.waiting.clock import Clock, Timer
from odradek.waiting.deferred import Deferred
from odradek.waiting.step_runner import StepRunner

if TYPE_CHECKING:
    from odradek.estimate.subscription_estimates import SubscriptionEstimates


class TelemetrySink(Protocol):
    """Keeps accepted pushes before the plugins get them."""

    def take(self, push: AcceptedPush) -> bool | Deferred[bool]:
        """Keep a push. Returns whether it is kept."""


@dataclass(slots=True, kw_only=True)
class Answering:
    """The parts that a dispatcher and the handlers of telemetry need."""

    settings: BrokerSettings
    clock: Clock
    timer: Timer
    quotas: QuotaManagers
    names: NameLimit
    audit: Audit
    steps: StepRunner
    """Runs the work of large requests."""
    metadata: MetadataStore
    telemetry: ClientMetricsManager
    sink: TelemetrySink | None = None
    """None if pushes only go to receivers."""
    authorization: Authorization = field(default_factory=Authorization)
    """The rights of callers."""
    followed_cluster: str | None = None
    """The cluster whose CLIENT_METRICS resources replace those of this program."""
    estimates: SubscriptionEstimates | None = None
    """None if changes of subscriptions are not estimated."""
    large_responses_refused: int = 0
    """Requests whose responses would have been larger than `response.max.bytes`."""

    @property
    def wants_telemetry(self) -> bool:
        """Whether anything takes pushes. If not, the telemetry APIs are not advertised."""
        return self.sink is not None or not self.telemetry.plugin.is_empty
