"""What an alert is about, how bad it is, and which alerts only follow from others: for Alertmanager."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from contrib.grafana.alerts import CAUSE_WORDS, GROUP, Alert

CRITICAL: Final = frozenset({"record-errors", "buffer-exhausted", "topic-refusals"})
"""Alerts of records that are lost: they need a person now. All others are warnings."""
GROUP_BY: Final = ("cluster_name", "alertname", "cause", "cause_key")
"""One notification for all clients that an alert finds slow at one broker, or all members of a group."""
NODE: Final = "node_id"
INSTANCE: Final = "client_instance_id"
CLIENT: Final = ("client_id", "principal")
"""What a host or a gateway sees of a client, and what the client says, are two instances of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequences:
    """Alerts that say nothing new while another one fires."""

    cause: str
    """The id of an alert, or the name of one about hosts."""
    of: tuple[str, ...]
    """The ids of alerts that are not sent meanwhile."""
    equal: tuple[str, ...]
    """Labels in which both must agree."""


CONSEQUENCES: Final = (
    Consequences(cause="slow-broker", of=("slow-produce-requests", "slow-consume-requests"), equal=(NODE,)),
    Consequences(
        cause="throttled-produce",
        of=("slow-produce-requests", "long-queue", "buffer-nearly-full"),
        equal=(INSTANCE,),
    ),
    Consequences(
        cause="throttled-fetch",
        of=("slow-consume-requests", "behind", "stalled"),
        equal=(INSTANCE,),
    ),
    Consequences(
        cause="slow-produce-requests", of=("retries", "long-queue", "buffer-nearly-full"), equal=(INSTANCE,)
    ),
    Consequences(cause="slow-consume-requests", of=("behind",), equal=(INSTANCE,)),
    Consequences(cause="record-errors", of=("retries",), equal=(INSTANCE,)),
    Consequences(cause="buffer-exhausted", of=("buffer-nearly-full", "long-queue"), equal=(INSTANCE,)),
    Consequences(
        cause="rebalance-storm",
        of=("long-rebalances", "failed-rebalances", "behind", "stalled"),
        equal=(GROUP,),
    ),
    Consequences(
        cause="throttled",
        of=("throttled-produce", "throttled-fetch", "long-queue", "buffer-nearly-full"),
        equal=CLIENT,
    ),
    Consequences(cause="failed-logins", of=("producer-reconnects", "consumer-reconnects"), equal=CLIENT),
    Consequences(cause="group-errors", of=("failed-rebalances",), equal=CLIENT),
    Consequences(cause="lost", of=("silent",), equal=CLIENT),
    Consequences(cause="OdradekDown", of=("silent",), equal=()),
    Consequences(cause="OdradekPushesNotStored", of=("silent",), equal=()),
)
"""Causes before their consequences. A loss of records is never held back."""


def cause_labels(alert: Alert) -> dict[str, str]:
    """What an alert is about: a broker, a group, a principal or a client, and which one."""
    return {"cause": CAUSE_WORDS[alert.by], "cause_key": f"{{{{ $labels.{alert.by} }}}}"}


def severity(alert: Alert) -> str:
    return "critical" if alert.id in CRITICAL else "warning"


def alert_labels(alert: Alert) -> dict[str, str]:
    """The labels that a rule gives to its alerts."""
    return {"severity": severity(alert), **cause_labels(alert)}


def alertmanager(found: list[Alert]) -> dict[str, Any]:
    """A configuration for Alertmanager with a route, and the rules of consequences."""
    names = {alert.id: alert.name for alert in found}
    return {
        "route": {
            "receiver": "people",
            "group_by": list(GROUP_BY),
            "group_wait": "30s",
            "group_interval": "5m",
            "repeat_interval": "12h",
        },
        "inhibit_rules": [
            {
                "source_matchers": [f'alertname="{names.get(each.cause, each.cause)}"'],
                "target_matchers": [f'alertname=~"{"|".join(names[of] for of in each.of)}"'],
                "equal": ["cluster_name", *each.equal],
            }
            for each in CONSEQUENCES
        ],
        "receivers": [{"name": "people"}],
    }
