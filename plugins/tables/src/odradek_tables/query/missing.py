"""Explains in one line why a question has no rows: the unknown name, and the known ones like it."""

from __future__ import annotations

from datetime import UTC
from difflib import get_close_matches
from itertools import chain

from odradek.findings.client_metrics import PREFIX
from odradek_tables.query.questions import Who, spellings
from odradek_tables.query.reader import Reader

OF_PUSH = ("client_id", "client_instance_id", "principal", "client_address")
"""The parts of a question about a client that each push has."""
NEAREST = 3


def missing_client(reader: Reader, who: Who) -> str:
    """Why no points match: the first of the given values that no push or point has."""
    for name in OF_PUSH:
        value = getattr(who, name)
        known = [] if value is None else names(reader, "pushes", name)
        if value is not None and value not in known:
            option = "--" + name.replace("_", "-")
            return f"no client pushed with {option} {value}{during(reader)}{nearest(value, known)}"
    if who.topic is not None and who.topic not in (known := names(reader, "points", "topic")):
        return f"no points of the topic {who.topic}{during(reader)}{nearest(who.topic, known)}"
    if who.metric is not None:
        found = missing_metric(reader, who.metric)
        if found is not None:
            return found
    return f"no points match all options{during(reader)}"


def missing_metric(reader: Reader, metric: str) -> str | None:
    """Why a metric has no points; None if it has."""
    known = names(reader, "points", "name")
    if not set(known).isdisjoint(spellings(metric)):
        return None
    short = [each.removeprefix(PREFIX) for each in known]
    return f"no points of {metric}{during(reader)}{nearest(metric.removeprefix(PREFIX), short)}"


def names(reader: Reader, table: str, column: str) -> list[str]:
    """The values of a column in the time range."""
    rows = reader.ask(f"SELECT DISTINCT {column} AS name FROM {table} WHERE {column} IS NOT NULL")
    return sorted(rows["name"].to_pylist())


def during(reader: Reader) -> str:
    bounds = (("since", reader.since), ("until", reader.until))
    return "".join(
        f" {word} {at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" for word, at in bounds if at is not None
    )


def nearest(value: str, known: list[str]) -> str:
    """The known names that are like a value."""
    whole = get_close_matches(value, known, NEAREST)
    parts = (each for each in known if value and value in each)
    found = list(dict.fromkeys(chain(whole, parts)))[:NEAREST]
    return f"; did you mean {' or '.join(found)}?" if found else ""
