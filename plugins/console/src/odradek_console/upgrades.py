"""What breaks for which client at the next upgrade of Kafka, by what the client really sends.

A gateway or a host that observes a client tells the version of its last request of each API. Otherwise the
library and the type of its group are known.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

from odradek.findings.incidents import OBSERVED
from odradek_console.engine.client import Client
from odradek_console.engine.fleet import Fleet
from odradek_console.engine.libraries import library_of, product_of, version_of
from odradek_console.json_form import JsonRow
from odradek_console.rows import ClientRow

DATA: Final = Path(__file__).parent / "engine" / "upgrades.toml"
SENT: Final = f"{OBSERVED}api.version"
JOIN: Final = "JoinGroup"
CLASSIC: Final = "classic"
Sent = Mapping[str, int]
"""The lowest version of each API that a client has sent."""


class Verdict(StrEnum):
    """What an upgrade means for a client, the worst first."""

    BREAKS = "breaks"
    CHANGES = "changes"
    UNSEEN = "not seen"
    SERVED = "served"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeRow(JsonRow):
    """A client, and what a version of Kafka means for it."""

    row: ClientRow
    kafka: str
    """The version."""
    verdict: Verdict
    reasons: tuple[str, ...]
    apis: int
    """APIs of which it is known which version the client sends."""


@cache
def kafka_versions() -> Sequence[Mapping[str, Any]]:
    """The data file: what each version of Kafka changes, the oldest first."""
    found: list[Mapping[str, Any]] = tomllib.loads(DATA.read_text(encoding="utf-8"))["kafka"]
    return found


def sent_by(fleet: Fleet, clients: Iterable[Client]) -> Iterator[tuple[str, Sent]]:
    """What each client has sent as long as it is remembered, by instance id."""
    for client in clients:
        found: dict[str, int] = {}
        for each in (client, *fleet.identities.parts(client)):
            series = fleet.series(each)
            for place in series.places.get(SENT, ()) if series is not None else ():
                api, point = dict(place.labels).get("api", ""), series.last(place) if series else None
                if api and point is not None:
                    found[api] = min(int(point.value), found.get(api, int(point.value)))
        group = fleet.lags.groups.get(client.entry.group_id)
        if group is not None and group.kind.lower() == CLASSIC:
            found.setdefault(JOIN, -1)
        yield client.entry.key, found


def upgrade_rows(rows: Iterable[ClientRow], sent: Mapping[str, Sent]) -> Iterator[UpgradeRow]:
    """Each client with each version of Kafka. A later one does not serve what an earlier one has ended."""
    for row in rows:
        versions, lowest, libraries = sent.get(row.client_instance_id, {}), dict[str, int](), dict[str, str]()
        for kafka in kafka_versions():
            lowest |= kafka.get("lowest", {})
            libraries |= kafka.get("libraries", {})
            verdict, reasons = judged(row, versions, lowest, libraries, kafka["plan"])
            yield UpgradeRow(
                row=row,
                kafka=kafka["version"],
                verdict=verdict,
                reasons=tuple(reasons),
                apis=sum(each >= 0 for each in versions.values()),
            )


def judged(
    row: ClientRow,
    versions: Sent,
    lowest: Mapping[str, int],
    libraries: Mapping[str, str],
    plan: Iterable[Mapping[str, str]],
) -> tuple[Verdict, list[str]]:
    """What the changes of a version mean for a client, and why."""
    too_old = [
        f"{api} v{version}, served from v{lowest[api]} on"
        for api, version in sorted(versions.items())
        if 0 <= version < lowest.get(api, 0)
    ]
    if too_old:
        return Verdict.BREAKS, too_old
    library = library_of(row.software, row.version)
    planned = [each["text"] for each in plan if each["api"] in versions and each["library"] == library]
    if planned:
        return Verdict.CHANGES, planned
    if any(version >= 0 for version in versions.values()):
        return Verdict.SERVED, []
    product, number = product_of(row.software, row.version)
    if number and product in libraries and number >= version_of(libraries[product]):
        return Verdict.SERVED, [f"by its library, which is {libraries[product]} or later"]
    return Verdict.UNSEEN, ["nobody observes what it sends"]
