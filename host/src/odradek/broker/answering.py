"""A dispatcher needs these parts in every program: for all requests of a host, and the few of a gateway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from odradek.broker.authorization import Authorization
from odradek.broker.common import Common
from odradek.plugin.context import RequestContext
from odradek.telemetry.accepted_push import AcceptedPush
from odradek.telemetry.client_key import key_of_request
from odradek.telemetry.client_metrics_manager import ClientMetricsManager
from odradek.telemetry.incidents import Incidents
from odradek.telemetry.topic_errors import note_topic_error
from odradek.waiting.deferred import Deferred

if TYPE_CHECKING:
    from odradek.estimate.subscription_estimates import SubscriptionEstimates


class TelemetrySink(Protocol):
    """Keeps accepted pushes before the plugins get them."""

    def take(self, push: AcceptedPush) -> bool | Deferred[bool]:
        """Keep a push. Returns whether it is kept."""


@dataclass(frozen=True, slots=True)
class PushHandling:
    """The parts that check, keep and estimate the pushes of clients."""

    manager: ClientMetricsManager
    """Checks them."""
    sink: TelemetrySink | None = None
    """Keeps them; None if they only go to receivers."""
    estimates: SubscriptionEstimates | None = None
    """None if changes of subscriptions are not estimated."""
    followed_cluster: str | None = None
    """The cluster whose CLIENT_METRICS resources replace those of this program."""
    incidents: Incidents | None = None
    """What goes wrong with clients; None if it is not told."""


class Answering:
    """The parts that a dispatcher and the handlers of telemetry need."""

    def __init__(self, common: Common, pushes: PushHandling, authorization: Authorization) -> None:
        self.settings = common.config.broker
        self.clock, self.timer, self.steps = common.clock, common.timer, common.steps
        self.quotas, self.names, self.audit = common.quotas, common.names, common.audit
        self.metadata = common.metadata
        self.telemetry, self.sink, self.estimates = pushes.manager, pushes.sink, pushes.estimates
        self.followed_cluster, self.incidents = pushes.followed_cluster, pushes.incidents
        self.authorization = authorization
        """The rights of callers."""
        self.large_responses_refused = 0
        """Requests whose responses would have been larger than `response.max.bytes`."""

    def tell_topic_error(self, context: RequestContext, code: int, topic: str) -> None:
        """Tell that a client was answered with an error of a topic."""
        if self.incidents is not None:
            connection_id = context.connection.connection_id
            key = key_of_request(context)
            note_topic_error(self.incidents, key, context.api_key, code, topic, connection_id)

    @property
    def wants_telemetry(self) -> bool:
        """Whether anything takes pushes. If not, the telemetry APIs are not advertised."""
        return self.sink is not None or not self.telemetry.plugin.is_empty
