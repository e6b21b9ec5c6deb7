"""``odradek api-versions``: the output of kafka-broker-api-versions.sh, for any broker.

Differs from the tool: an API that this client does not use has no ``[usable: N]``, and APIs that the broker
does not have are left out.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import click

from odradek.cli.connect import cluster_options, connected
from odradek.cli.listing import json_option, show
from odradek.client.address import Address
from odradek.client.connection import Connection
from odradek.wire.api_names import api_name
from odradek.wire.messages.metadata import MetadataResponseBroker
from odradek.wire.types import Versions

FAILING = "Error while executing the command:"
WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


@click.command("api-versions")
@cluster_options
@json_option
def api_versions(as_json: bool, bootstrap_server: str, command_config: Path | None) -> None:
    """Show the APIs of each broker, with their versions and the newest one that this client can use."""
    with connected(FAILING, bootstrap_server, command_config) as admin:
        cluster = admin.cluster
        brokers = cluster.metadata([]).brokers
        found = [(each, cluster.connection(Address(each.host, each.port))) for each in brokers]
        rows = [(broker, row) for broker, connection in found for row in rows_of(broker, connection)]
    lines: list[str] = []
    for broker in brokers:
        rack = "null" if broker.rack is None else broker.rack
        lines.append(f"{broker.host}:{broker.port} (id: {broker.node_id} rack: {rack} isFenced: false) -> (")
        lines.append(",\n".join(line(row) for of, row in rows if of is broker))
        lines.append(")")
    show(as_json, (row for _, row in rows), lines)


def rows_of(broker: MetadataResponseBroker, connection: Connection) -> list[dict[str, Any]]:
    """The APIs of a broker, by key."""
    return [
        {
            "broker": broker.node_id,
            "api": api_name(key),
            "key": key,
            "first": offered.first,
            "last": offered.last,
            "usable": usable(api_name(key), offered),
        }
        for key, offered in sorted(connection.offered.items())
    ]


def usable(name: str, offered: Versions) -> int | None:
    """The newest version that both the broker and this client have; None if there is none."""
    module = WORD.sub("_", name).lower()
    try:
        messages = importlib.import_module(f"odradek.wire.messages.{module}")
    except ModuleNotFoundError:
        return None
    known: Versions = getattr(messages, f"{name}Request").VERSIONS
    newest = min(known.last, offered.last)
    return newest if newest >= max(known.first, offered.first) else None


def line(row: dict[str, Any]) -> str:
    """One API as the tool prints it."""
    first, last, newest = row["first"], row["last"], row["usable"]
    versions = str(first) if first == last else f"{first} to {last}"
    return f"\t{row['api']}({row['key']}): {versions}" + ("" if newest is None else f" [usable: {newest}]")
