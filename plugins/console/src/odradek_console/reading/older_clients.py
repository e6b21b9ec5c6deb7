"""A client that the console does not know, from the inventory of the tables of odradek-spark."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from odradek.findings.app_name import app_name
from odradek_console.engine.client_entry import State
from odradek_console.figures import IN_TABLES, SEEN
from odradek_console.rows import ClientDetail, ClientRow

if TYPE_CHECKING:
    import duckdb

QUERY: Final = """
SELECT client_instance_id, max_by(coalesce(client_id, ''), last_seen) AS client_id,
    max_by(coalesce(software_name, ''), last_seen) AS software,
    max_by(coalesce(software_version, ''), last_seen) AS version,
    max_by(coalesce(principal, ''), last_seen) AS principal,
    max_by(coalesce(client_address, ''), last_seen) AS address,
    max_by(coalesce(broker_id, -1), last_seen) AS node_id, max_by(coalesce(source, ''), last_seen) AS source,
    max_by(coalesce(push_interval_ms, 0), last_seen) AS interval_ms,
    max_by(coalesce(observed, false), last_seen) AS observed, CAST(sum(pushes) AS BIGINT) AS pushes,
    epoch_ms(min(valid_from)) AS first_ms, epoch_ms(max(last_seen)) AS last_ms
FROM clients WHERE client_instance_id = $name OR client_id = $name
GROUP BY client_instance_id ORDER BY client_instance_id = $name DESC, last_ms DESC LIMIT 1
"""


def older_client(connection: duckdb.DuckDBPyConnection, name: str) -> ClientDetail | None:
    """The client of an instance id; or of a client id, then the instance that pushed last.

    Args:
        connection: A database with the table ``clients``.
        name: The instance id, as Kafka prints it, or the client id.
    """
    answered = connection.execute(QUERY, {"name": name})
    names = [each[0] for each in answered.description or ()]
    found = answered.fetchone()
    return None if found is None else detail(dict(zip(names, found, strict=True)))


def detail(found: Mapping[str, Any]) -> ClientDetail:
    """A row of `QUERY` as a client that is gone."""
    row = ClientRow(
        **found,
        group_id="",
        app=app_name(found["client_id"]),
        owner="",
        cluster_id="",
        gateway="",
        state=State.GONE,
        sources=(*([SEEN] if found["observed"] else []), IN_TABLES),
        figures={},
        connected_ms=found["first_ms"],
        before_node=-1,
        subscription_id=0,
        gaps=0,
        refused=0,
        last_error="",
        payload_bytes=0,
        series=0,
        findings=(),
        notes=(),
        causes=(),
        troubles=(),
        brokers=(),
    )
    return ClientDetail(
        row=row,
        labels=(),
        connections=(),
        parts=(),
        others=(),
        findings=(),
        ended=(),
        series=(),
        not_reported=(),
        skew_ms=0,
        gap_ms=0,
        last_bytes=0,
        largest_bytes=0,
        last_error_ms=0,
    )


@contextmanager
def interrupted(connection: duckdb.DuckDBPyConnection, after_s: float) -> Iterator[None]:
    """Interrupt what the database does after a time."""
    timer = threading.Timer(after_s, connection.interrupt)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
