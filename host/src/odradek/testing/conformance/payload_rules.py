"""Rules about the names and labels in pushes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from odradek.findings.client_metrics import PREFIX
from odradek.testing.conformance.conversation_rules import told
from odradek.testing.conformance.exchange import ClientInstance
from odradek.testing.conformance.finding import Finding, Observation, ok, unseen, wrong
from odradek.testing.conformance.standard_metrics import HOST_LABELS, RESOURCE_LABELS
from odradek.testing.data_points import DataPoint
from odradek.wire.error_code import ErrorCode

METRIC_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)+")
LABEL_NAME = re.compile(r"[a-z][a-z0-9_]*")
MEANT = {"member_id": "group_member_id"}
"""Other names for labels of the KIP, with the KIP's names."""
ALL = "*"
SHOWN = 5
NO_METRIC = unseen("no metric was seen")


def points(instance: ClientInstance) -> Iterator[DataPoint]:
    for push in instance.accepted:
        yield from push.points()


def shown(names: Iterable[str]) -> str:
    """The first names, and the number of the others."""
    wanted = sorted(names)
    more = f" and {len(wanted) - SHOWN} more" if len(wanted) > SHOWN else ""
    return ", ".join(wanted[:SHOWN]) + more


def metric_names(instance: ClientInstance, seen: Observation) -> Finding:
    """A name is in lower case with parts separated by dots, and starts with a reversed domain name."""
    names = {point.metric for point in points(instance)}
    if not names:
        return NO_METRIC
    bad = [name for name in names if not METRIC_NAME.fullmatch(name)]
    if bad:
        return wrong(shown(bad))
    own = [name for name in names if not name.startswith(PREFIX)]
    return ok(f"{len(names)} names" + (f", {len(own)} of them not Kafka's" if own else ""))


def asked_for(name: str, prefixes: Iterable[str]) -> bool:
    """Whether a subscription with these prefixes requests a metric."""
    return any(prefix == ALL or name.startswith(prefix) for prefix in prefixes)


def requested(instance: ClientInstance, seen: Observation) -> Finding:
    """A push contains only requested metrics."""
    count, others = 0, set()
    for handshake, push in told(instance):
        if push.error is ErrorCode.NONE:
            count += 1
            others |= {
                point.metric
                for point in push.points()
                if not asked_for(point.metric, handshake.response.requested_metrics)
            }
    if not count:
        return unseen("the requested metrics are not known")
    return wrong(shown(others)) if others else ok(f"in {count} of {count} pushes")


def resource_labels(instance: ClientInstance, seen: Observation) -> Finding:
    """The client's own resource labels have the names of the KIP."""
    labels: set[str] = set()
    grouped = False
    for point in points(instance):
        labels |= point.resource.keys()
        grouped = grouped or point.metric.startswith(f"{PREFIX}consumer.coordinator.")
    strange = labels - RESOURCE_LABELS - HOST_LABELS
    if strange:
        return wrong(shown(map(hint, strange)))
    if grouped and "group_id" not in labels:
        return wrong("a member of a group without group_id")
    own = labels & RESOURCE_LABELS
    return ok(shown(own)) if own else unseen("the client sets no resource labels")


def hint(label: str) -> str:
    """A label, with the name it should have if that is another one."""
    name = re.sub(r"[.\- ]", "_", label.lower())
    meant = MEANT.get(name, name)
    return label if meant == label else f"{label} (should be {meant})"


def point_labels(instance: ClientInstance, seen: Observation) -> Finding:
    """Labels of data points are in lower case with underscores."""
    labels = {label for point in points(instance) for label in point.attributes}
    bad = [label for label in labels if not LABEL_NAME.fullmatch(label)]
    if bad:
        return wrong(shown(map(hint, bad)))
    return ok(shown(labels)) if labels else unseen("no data point has labels")
