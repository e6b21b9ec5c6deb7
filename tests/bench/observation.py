"""The cost of observing a client, for each request and for each window.

Run: ``python tests/bench/observation.py [ROUNDS]``. Each row is the CPU time of the request and its response
together, as a pair calls the observer; the relay of a gateway takes 5 to 14 µs for the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time_ns

sys.path.insert(0, str(Path(__file__).parents[1]))

from odradek.gateway.observation.apis import LOOKED_AT, PRODUCE
from odradek.gateway.observation.client_report import report
from odradek.gateway.observation.names import wanted_names
from odradek.wire.codec import encode
from odradek.wire.header import RequestHeader, request_header
from odradek.wire.messages.fetch import FetchRequest, FetchResponse
from odradek.wire.messages.metadata import MetadataRequest, MetadataResponse
from odradek.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from support.batches import batch_of
from support.observed import Pair, Stage
from unit.gateway.observation.test_observed_requests import produce, produced

LATENCY_NS = 1_500_000


def frames(request: object, response: object, version: int) -> tuple[int, int, bytes, bytes]:
    """API key, version, and both frames without their lengths."""
    key, flexible = type(request).API_KEY, version in type(request).FLEXIBLE  # type: ignore[attr-defined]
    sent = request_header(RequestHeader(key, version, 1, "orders"), flexible) + encode(request, version)
    return key, version, sent, bytes(4) + (b"\0" if flexible else b"") + encode(response, version)


def exchange(pair: Pair, rounds: int, made: tuple[int, int, bytes, bytes]) -> Callable[[], None]:
    """A function that passes a request and its response many times."""
    key, version, sent, received = made
    observer, read = pair.observer, pair.beginning.read
    sent_size, received_size = len(sent), len(received)
    sized = sent_size.to_bytes(4) + sent

    def run() -> None:
        for _ in range(rounds):
            if key == PRODUCE:
                read(sized, 4, sent_size, version)
                observer.produce(version, sized, 0, 1, pair.beginning)
            elif key in LOOKED_AT:
                observer.look(key, version, sent, 0)
            observer.requests(key, version, 1, sent_size + 4, 1)
            observer.responses(key, 1, received_size + 4, LATENCY_NS)
            observer.outcome(key, version, received_size, received, 0)

    return run


def microseconds(run: Callable[[], None], rounds: int) -> float:
    """The least time of one round, of seven runs."""
    found = []
    for _ in range(7):
        started_ns = process_time_ns()
        run()
        found.append(process_time_ns() - started_ns)
    return min(found) / rounds / 1_000


def main(rounds: int = 100_000) -> None:
    """Print a row for each case."""
    batch = batch_of(b"v" * 1_000)
    cases = {
        "Fetch v4 (basic account)": frames(FetchRequest(), FetchResponse(), 4),
        "Fetch v12 (with a top-level error code)": frames(FetchRequest(), FetchResponse(), 12),
        "Metadata v7": frames(MetadataRequest(), MetadataResponse(), 7),
        "OffsetCommit v8": frames(OffsetCommitRequest(), OffsetCommitResponse(), 8),
        "Produce v7, 1 batch of 1 kB": frames(produce(batch), produced(0), 7),
        "Produce v9, 1 batch of 1 kB": frames(produce(batch), produced(0), 9),
        "Produce v13, 1 batch of 1 kB": frames(produce(batch), produced(0), 13),
        "Produce v7, 10 batches": frames(produce(*[batch] * 10), produced(*[0] * 10), 7),
        "Produce v9, 10 batches": frames(produce(*[batch] * 10), produced(*[0] * 10), 9),
        "Produce v9, 100 batches": frames(produce(*[batch] * 100), produced(*[0] * 100), 9),
    }
    for name, made in cases.items():
        pair = Stage().pair()
        times = rounds // 100 if "0 batches" in name else rounds
        print(f"{name:45} {microseconds(exchange(pair, times, made), times):8.2f} µs")
    stage = Stage()
    for node_id in (1, 2, 3):
        pair = stage.pair(node_id=node_id)
        for made in cases.values():
            exchange(pair, 10, made)()
    (watched,) = stage.observation.clients.values()
    wanted = wanted_names(["*"])

    def windows() -> None:
        for _ in range(1_000):
            report(watched.account, wanted, stage.clock.now_ms(), stage.clock.monotonic_ms())

    print(f"{'A window of 3 nodes, all metrics':45} {microseconds(windows, 1_000):8.2f} µs")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
