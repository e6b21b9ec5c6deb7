"""Destinations of alarms: a webhook, and Alertmanager's API v2. What is sent, and how it is retried."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from urllib.parse import urlsplit

from odradek.endpoints.http_answer import WEB_PAGE
from odradek.endpoints.http_exchange import NoAnswer, exchange
from odradek.findings.troubles import BY_ID

TIMEOUT_S = 10.0
"""Of one request with its answer."""
MAX_ANSWER_BYTES = 1 << 16
"""More of an answer is not read: its status says all."""
HEADERS = {"Content-Type": "application/json", "User-Agent": "odradek-spark"}
PAUSES_S = (1.0, 3.0)
"""Pauses between the attempts of a run; the next run tries again."""
BATCH = 100
"""Anomalies in a request."""
ALIVE = timedelta(minutes=15)
"""Alertmanager resolves an open alert after this time without a repetition."""
OPENED, ENDED = "opened", "closed"
LABELS = (
    *("client_id", "client_instance_id", "software_name", "software_version", "principal"),
    *("client_address", "client_rack", "group_id"),
)
Row = Mapping[str, Any]


class NotDelivered(Exception):
    """A destination refused or did not answer; the message says why."""

    def __init__(self, problem: str, *, is_final: bool = False) -> None:
        super().__init__(problem)
        self.is_final = is_final
        """Another attempt in the same run cannot help: a request that is refused as invalid stays so."""


@dataclass(frozen=True, slots=True)
class Event:
    """An episode that opened or closed."""

    row: Row
    event: str

    @property
    def id(self) -> str:
        """The id of the event, the same in each attempt."""
        row = self.row
        started = row["started_ts"].isoformat()
        labels = row["attrs"] or ""
        return f"{row['rule']}/{row['client_instance_id']}/{row['name']}{labels}/{started}/{self.event}"


class Destination(Protocol):
    """A destination of alarms."""

    @property
    def name(self) -> str:
        """The name under which the table stores what was delivered."""

    @property
    def repeats(self) -> bool:
        """Whether open episodes must be sent again in each run."""

    @property
    def answers_pages(self) -> bool:
        """Whether a web page is an answer of it, and not of a portal in its place."""

    @property
    def url(self) -> str:
        """The URL of the requests."""

    def body(self, events: Sequence[Event], now: datetime) -> object:
        """The body of a request, as JSON."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """A JSON document for each batch of events."""

    url: str
    name: str = "webhook"
    repeats: bool = False
    answers_pages: bool = True

    def body(self, events: Sequence[Event], now: datetime) -> object:
        """``{"version": 1, "anomalies": [...]}``."""
        return {"version": 1, "anomalies": [described(each) for each in events]}


@dataclass(frozen=True, slots=True)
class Alertmanager:
    """Alerts for Alertmanager, given the URL of its root."""

    root: str
    name: str = "alertmanager"
    repeats: bool = True
    answers_pages: bool = False

    @property
    def url(self) -> str:
        """The endpoint of alerts."""
        return self.root.rstrip("/") + "/api/v2/alerts"

    def body(self, events: Sequence[Event], now: datetime) -> object:
        """An alert for each event."""
        return [alert(each, now) for each in events]


def described(event: Event) -> dict[str, object]:
    """An event for a webhook: the row of the table, and the texts of the trouble."""
    row = event.row
    texts = {key: plain(value) for key, value in row.items() if key not in ("delivered", "date")}
    return {"id": event.id, "event": event.event, "summary": summary(row), **texts, **trouble(row)}


def alert(event: Event, now: datetime) -> dict[str, object]:
    """An event as an alert of Alertmanager's API v2."""
    row = event.row
    labels = {"alertname": row["rule"], "metric": row["name"], "job": "odradek"}
    labels |= {key: row[key] for key in LABELS if row.get(key)}
    for key, value in json.loads(row["attrs"] or "{}").items():
        labels.setdefault(label_name(key), str(value))
    ends = (row["closed_ts"] or now) if event.event == ENDED else now + ALIVE
    return {
        "labels": labels,
        "annotations": {"summary": summary(row), **trouble(row)},
        "startsAt": row["started_ts"].isoformat(),
        "endsAt": max(ends, row["started_ts"]).isoformat(),
    }


def label_name(key: str) -> str:
    """A label's name as Prometheus allows it."""
    return "".join(each if each.isascii() and each.isalnum() else "_" for each in key)


def summary(row: Row) -> str:
    """One line for people."""
    who = row["client_id"] or row["client_instance_id"]
    return f"{row['rule']}: {who}: {row['name']} is {row['last']:g}, beyond {row['op']} {row['threshold']:g}"


def trouble(row: Row) -> dict[str, str]:
    """The question and advice of the table of troubles, if the rule is in it."""
    found = BY_ID.get(row["rule"])
    if found is None:
        return {}
    return {"question": found.question, "advice": found.advice, "unit": found.unit}


def plain(value: object) -> object:
    """A value of the table as JSON allows it."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value.isoformat() if isinstance(value, datetime) else value


def post(
    destination: Destination,
    events: Sequence[Event],
    now: datetime,
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Send events in one request; retry with growing pauses.

    Raises:
        NotDelivered: No attempt was accepted, or the destination refused the request for good.
    """
    data = json.dumps(destination.body(events, now)).encode()
    for pause_s in (*PAUSES_S, None):
        try:
            send(destination, data)
        except NotDelivered as error:
            if pause_s is None or error.is_final:
                raise
            sleep(pause_s)
        else:
            return


def send(destination: Destination, data: bytes) -> None:
    """Send one request.

    Raises:
        NotDelivered: The answer is not 2xx, is none of this destination, or there is none.
    """
    place = urlsplit(destination.url).hostname  # a path or query may hold a secret
    try:
        answer = exchange(
            destination.url, timeout_s=TIMEOUT_S, max_bytes=MAX_ANSWER_BYTES, body=data, headers=HEADERS
        )
    except NoAnswer as error:
        raise NotDelivered(f"{place}: {error}") from error
    if answer.is_redirect:
        raise NotDelivered(f"{place} answered {answer.status}: it has moved; correct the URL", is_final=True)
    if not answer.is_success:
        is_passing = answer.status >= 500 or answer.status in (408, 429)
        raise NotDelivered(f"{place} answered {answer.status}", is_final=not is_passing)
    if answer.content_type == WEB_PAGE and not destination.answers_pages:
        raise NotDelivered(f"{place} answered with a web page; correct the URL", is_final=True)
