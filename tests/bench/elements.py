"""How long a request with the maximum number of array elements holds the event loop in one turn.

Every array of every API is filled in turn, with one existing thing many times, with existing things, and with
things that do not exist; further rows are the largest requests that real tools send. The table shows the
longest turn of the loop, all turns of the request together, and the size of the answer. The bench fails if a
turn is longer than `LIMIT_MS`.

``--acls N`` gives the host an authorizer with N ACLs of others, many of them about the names of the requests;
the client is allowed everything by ACLs. With ``--refuse`` it is allowed nothing.

Usage, from the folder above: ``python -m bench.elements [--only TEXT] [--all] [--limit MS]
[--acls N [--refuse]]``
"""

from __future__ import annotations

import argparse
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.element_rows import Request, fill, large_requests
from bench.harness import head
from bench.loop_turns import LoopTurns
from odradek.broker.dispatch.routes import Routes
from odradek.process.garbage import freeze_garbage
from odradek.security.acl import Acl
from odradek.security.standard_authorizer import StandardAuthorizer
from odradek.testing.host_thread import HostThread
from support.acls import acl
from support.element_requests import Contents, full_requests
from support.hosts import running_host
from support.wire_client import WireClient

GOAL_MS = 5.0
LIMIT_MS = 50.0
ROUNDS = 2
PATIENCE_S = 120


@dataclass(frozen=True, slots=True)
class Row:
    """The cost of one request."""

    title: str
    longest_ms: float
    total_ms: float
    turns: int
    answer_bytes: int | None
    """None if the connection was closed instead."""


class Bench:
    """Sends requests to a host on its own thread and measures its loop."""

    def __init__(self, address: tuple[str, int], turns: LoopTurns) -> None:
        self.address = address
        self.turns = turns
        self.routes = Routes()

    def row(self, title: str, request: Request) -> Row:
        """The cheapest of several rounds: other programs and the first use of a codec only add time."""
        rounds = [
            self.measured(title, request(number) if callable(request) else request)
            for number in range(ROUNDS)
        ]
        return min(rounds, key=lambda row: row.longest_ms)

    def measured(self, title: str, request: Any) -> Row:
        with WireClient(self.address, timeout_s=PATIENCE_S) as client:
            frame = client.frame(request, self.routes[request.API_KEY].versions.last)
            self.turns.restart()
            size = answered_bytes(client.socket, frame)
        time.sleep(0.005)
        turns = self.turns
        return Row(title, turns.longest_ns / 1e6, turns.total_ns / 1e6, turns.turns, size)


def answered_bytes(connection: socket.socket, frame: bytes) -> int | None:
    """Send a frame; the size of its answer, which is read and discarded."""
    try:
        connection.sendall(frame)
        head = connection.recv(4, socket.MSG_WAITALL)
        size = left = struct.unpack(">i", head)[0]
        while left:
            left -= len(connection.recv(min(left, 1 << 20))) or left
    except (ConnectionError, struct.error):
        return None
    return int(size)


def rows(bench: Bench, contents: Contents, only: str) -> Iterator[Row]:
    with WireClient(bench.address) as client:
        for title, request in large_requests(client, only):
            yield bench.row(title, request)
    for _, route in sorted(bench.routes.items()):
        for title, request in full_requests(route.request, route.versions.last, contents):
            if only in title:
                yield bench.row(title, request)


def others_acls(count: int) -> list[Acl]:
    """ACLs of other clients about names and prefixes of names in the requests, denials among them."""
    found = []
    for number in range(count):
        kind = "topic" if number % 3 else "group"
        permission, prefix = ("ALLOW", "DENY")[number % 7 == 0], "*" if number % 2 else ""
        name = f"{kind}-{number}" if number % 4 < 2 else "unknown-9999"[: 1 + number % 12]
        found.append(acl(f"{permission} User:{number} ALL {kind.upper()} {name}{prefix}"))
    return found


OWN_ACLS: Final = [
    acl(f"ALLOW User:ANONYMOUS ALL {kind} *") for kind in ("TOPIC", "GROUP", "TRANSACTIONAL_ID")
]
CLUSTER_ACL: Final = acl("ALLOW User:ANONYMOUS ALL CLUSTER kafka-cluster")


@contextmanager
def filled_host(folder: Path, options: argparse.Namespace) -> Iterator[tuple[HostThread, Contents]]:
    """A host with things to ask for, and ACLs if they are wanted."""
    settings = ["telemetry.durability=memory"]
    if options.acls:
        settings += ["authorizer.class.name=StandardAuthorizer", "super.users=User:root"]
    with running_host(folder, *settings) as thread:
        authorizer = thread.host.authorizer
        if isinstance(authorizer, StandardAuthorizer):
            thread.call(lambda: authorizer.add([*others_acls(options.acls), *OWN_ACLS, CLUSTER_ACL]))
        with WireClient(thread.address, timeout_s=PATIENCE_S) as client:
            contents = fill(client)
        if isinstance(authorizer, StandardAuthorizer) and options.refuse:
            thread.call(lambda: authorizer.remove([*OWN_ACLS, CLUSTER_ACL]))
        yield thread, contents


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="only rows whose title contains this text")
    parser.add_argument("--all", action="store_true", help="also print the rows below the goal")
    parser.add_argument("--limit", type=float, default=LIMIT_MS, help="milliseconds of one turn")
    parser.add_argument("--acls", type=int, default=0, metavar="N", help="an authorizer with N ACLs")
    parser.add_argument("--refuse", action="store_true", help="the client has no rights")
    options = parser.parse_args()
    print(head("elements"), file=sys.stderr)
    turns = LoopTurns()
    with (
        tempfile.TemporaryDirectory() as folder,
        filled_host(Path(folder), options) as (thread, contents),
    ):
        thread.call(lambda: turns.watch(thread.loop))
        freeze_garbage()
        found = list(rows(Bench(thread.address, turns), contents, options.only))
    over = [row for row in found if row.longest_ms > options.limit]
    slow = [row for row in found if row.longest_ms > GOAL_MS]
    print(f"{'request':60} {'longest':>9} {'all turns':>10} {'turns':>6} {'answer':>12}")
    for row in sorted(found if options.all else slow, key=lambda row: -row.longest_ms):
        answer = "closed" if row.answer_bytes is None else f"{row.answer_bytes:,} B"
        print(f"{row.title:60} {row.longest_ms:6.1f} ms {row.total_ms:7.1f} ms {row.turns:6} {answer:>12}")
    print(f"{len(found)} requests: {len(slow)} above {GOAL_MS:g} ms, {len(over)} above {options.limit:g} ms")
    unseen = [row.title for row in found if not row.turns]
    if unseen or not found:
        print(f"not measured: {', '.join(unseen) or 'no request was sent'}")
    return 1 if over or unseen or not found else 0


if __name__ == "__main__":
    sys.exit(main())
