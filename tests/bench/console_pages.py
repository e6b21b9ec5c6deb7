"""The console process with many clients: memory, CPU to read the topic, time of pages beside a bare page.

A host has the topic and ten subscriptions. The console's fleet is 5000 clients with 200 series each that
have pushed once a minute for an hour; it then reads a further push of each from the topic, and pages are
asked for while it reads what the fleet goes on pushing. Fails above the goals.

Usage, from the folder above: ``python -m bench.console_pages [--clients 5000] [--series 200] [--pushes 60]``
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.console_fleet import INTERVAL_S, Pushes
from bench.harness import REACHED, Server, cpu_ns, head, rss_bytes, running, verdict
from odradek.client.admin import AdminClient
from odradek.client.producer import Producer
from odradek.topic.telemetry_topic import encode_headers, record_key
from odradek.wire.record import Record
from support.hosts import serving

TOPIC = "pushes"
AT_ONCE = 20
"""Records of a batch."""
GOAL_MIB = 1024
GOAL_RATIO = 20
"""Of the first page to a bare table: 200 ms where that takes 10."""
GOAL_HELD_MS = 50
STREAMS = 20
SUBSCRIPTIONS = 10
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Page:
    """The time of a page: the first one, and the median of those that follow; the server's CPU of one."""

    first_ms: float
    median_ms: float
    cpu_ms: float
    body_bytes: int


class Web:
    """A connection to a server of pages."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)

    def get(self, path: str, *, gzip: bool = False) -> bytes:
        headers = {"Accept": "text/html"} | ({"Accept-Encoding": "gzip"} if gzip else {})
        self.connection.request("GET", path, headers=headers)
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            sys.exit(f"{path}: {answer.status}: {body[:500]!r}")
        return body

    def page(self, path: str, times: int, *, gzip: bool = False, pause_s: float = 0.0) -> Page:
        found, before_ns = [], cpu_ns(self.server.pid)
        for _ in range(times):
            began_s = time.perf_counter()
            body = self.get(path, gzip=gzip)
            found.append((time.perf_counter() - began_s) * 1e3)
            time.sleep(pause_s)
        cpu_ms = (cpu_ns(self.server.pid) - before_ns) / 1e6 / times
        return Page(found[0], statistics.median(found[1:]), cpu_ms, len(body))


class Feed(threading.Thread):
    """Writes the pushes of a fleet to the topic at its rate, turn after turn."""

    def __init__(self, bootstrap: str, pushes: Pushes) -> None:
        super().__init__(daemon=True)
        self.bootstrap = bootstrap
        self.pushes = pushes
        self.stopped = threading.Event()

    def send_turn(self, turn: int, rate: float | None = None) -> None:
        """Write a push of each client, at a rate per second or at once."""
        with AdminClient(self.bootstrap) as admin:
            producer, waiting, began_s, sent = Producer(admin), [], time.perf_counter(), 0
            for found in self.pushes.turn(turn):
                key = record_key(found.payload.client_instance_id)
                waiting.append(
                    Record(key, found.payload.data, found.context.received_ms, tuple(encode_headers(found)))
                )
                if len(waiting) == AT_ONCE:
                    producer.send({(TOPIC, 0): waiting})
                    sent, waiting = sent + len(waiting), []
                    if rate and self.stopped.wait(max(0.0, began_s + sent / rate - time.perf_counter())):
                        return
            if waiting:
                producer.send({(TOPIC, 0): waiting})

    def run(self) -> None:
        turn = 2
        while not self.stopped.is_set():
            self.send_turn(turn, self.pushes.clients / INTERVAL_S)
            turn += 1


@contextmanager
def streams(port: int, count: int) -> Iterator[list[int]]:
    """Open event streams; yields the events that each has sent."""
    events = [0] * count
    stopped = threading.Event()
    opened = [http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S) for _ in range(count)]

    def follow(number: int) -> None:
        opened[number].request("GET", "/events")
        answer = opened[number].getresponse()
        while not stopped.is_set():
            events[number] += answer.readline().startswith(b"event: changed")

    threads = [threading.Thread(target=follow, args=(number,), daemon=True) for number in range(count)]
    for each in threads:
        each.start()
    yield events
    stopped.set()
    for each in threads:
        each.join(PATIENCE_S)
    for connection in opened:
        connection.close()


def cpu_per_s(server: Server, seconds: float) -> float:
    """The share of a core that a server uses."""
    before, began_s = cpu_ns(server.pid), time.perf_counter()
    time.sleep(seconds)
    return (cpu_ns(server.pid) - before) / 1e9 / (time.perf_counter() - began_s)


def reading(server: Server, web: Web, feed: Feed, options: argparse.Namespace) -> None:
    """The cost of a record, of one push of each client."""
    before, began_s = cpu_ns(server.pid), time.perf_counter()
    feed.send_turn(1)
    while fewest_pushes(web) <= options.pushes:
        if time.perf_counter() > began_s + PATIENCE_S:
            sys.exit("the console has not read the topic")
        time.sleep(0.25)
    rate = options.clients / (time.perf_counter() - began_s)
    cpu_us = (cpu_ns(server.pid) - before) / 1e3 / options.clients
    print(f"  a record read            {cpu_us:8.0f} µs of CPU; {rate:.0f} records/s while they are written")


def fewest_pushes(web: Web) -> int:
    """The pushes of the client with the fewest."""
    (row,) = json.loads(web.get("/api/v1/clients?rows=1&sort=pushes"))["clients"]
    found: int = row["pushes"]
    return found


def pages(web: Web, one: str, times: int, pause_s: float) -> dict[str, Page]:
    """The pages by title."""
    paths = {
        "fleet": "/",
        "fleet, gzip": "/",
        "fleet, a filter, gzip": "/?findings=?*&software=apache*",
        "fleet, groups, gzip": "/?group=app",
        "clients as CSV": "/clients.csv",
        "clients as CSV, gzip": "/clients.csv",
        "1000 clients as JSON": "/api/v1/clients?rows=1000",
        "a client, gzip": f"/clients/{one}",
        "subscriptions, gzip": "/subscriptions",
    }
    return {
        title: web.page(path, times, gzip="gzip" in title, pause_s=pause_s) for title, path in paths.items()
    }


def report(title: str, found: dict[str, Page], bare_ms: float) -> None:
    print(title)
    for name, each in found.items():
        print(
            f"  {name:<25}{each.median_ms:8.1f} ms{each.median_ms / bare_ms:8.1f} bare tables, "
            f"{each.cpu_ms:.1f} ms of CPU; the first {each.first_ms:.1f} ms; {each.body_bytes / 1e3:.0f} kB"
        )


def subscriptions() -> Sequence[str]:
    """Settings of ten subscriptions."""
    metrics = "org.apache.kafka.producer.,org.apache.kafka.consumer.fetch."
    settings = [
        f"subscriptions.s{each}.{setting}"
        for each in range(SUBSCRIPTIONS)
        for setting in (f"metrics={metrics}", f"match=client_id=.*{each}")
    ]
    return [part for each in settings for part in ("--set", each)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=5_000)
    parser.add_argument("--series", type=int, default=200)
    parser.add_argument("--pushes", type=int, default=60)
    parser.add_argument("--times", type=int, default=20, help="requests of each page")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each look at the CPU")
    options = parser.parse_args()
    print(head("console_pages"), file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        host = stack.enter_context(serving(Path(folder), *subscriptions()))
        with AdminClient(host.bootstrap) as admin:
            Producer(admin).partitions(TOPIC)
        program = [sys.executable, "-m", "bench.console_server"]
        for name in ("clients", "series", "pushes"):
            program += [f"--{name}", str(getattr(options, name))]
        bare = stack.enter_context(running([sys.executable, "-m", "bench.bare_page"]))
        with running([*program, "--bootstrap", host.bootstrap, "--topic", TOPIC]) as server:
            verdicts = measure(server, bare, host.bootstrap, options)
        figures = json.loads(server.last_words)
    push_us, scale, held_mib = figures["push_us"], figures["scale"], figures["held_mib"]
    print(f"  a push added             {push_us:8.0f} µs of CPU")
    print(f"  counted                  {held_mib:8.0f} MiB, histories at {scale:.2f} of their length")
    for name, held_ms in figures["held_ms"].items():
        verdicts.append(verdict(held_ms, GOAL_HELD_MS))
        print(f"  lock held by {name:<12}{held_ms:8.0f} ms at most: {verdicts[-1]}")
    if {*verdicts} != {REACHED}:
        sys.exit("above the goals")


def measure(server: Server, bare: Server, bootstrap: str, options: argparse.Namespace) -> list[str]:
    """Ask for pages, and look at the process; returns whether the goals are reached."""
    web, peer = Web(server), Web(bare)
    hello, table = peer.page("/", 200), peer.page("/table", 50, gzip=True)
    print(f"{options.clients} clients x {options.series} series, {options.pushes} pushes each")
    print(f"  a bare page              {hello.median_ms:8.2f} ms")
    print(f"  a bare table, gzip       {table.median_ms:8.2f} ms, 100 rows")
    first = web.page("/", 5)
    ratio = first.first_ms / table.median_ms
    print(f"  the first page           {first.first_ms:8.1f} ms, the next {first.median_ms:.1f} ms")
    one = json.loads(web.get("/api/v1/clients?rows=1"))["clients"][0]["client_instance_id"]
    report("nothing is pushed", pages(web, one, options.times, 0.0), table.median_ms)
    feed = Feed(bootstrap, Pushes(options.clients, options.series, int(time.time())))
    reading(server, web, feed, options)
    feed.start()
    time.sleep(2.0)
    idle = cpu_per_s(server, options.seconds)
    rate = options.clients / INTERVAL_S
    print(f"  reading {rate:.0f} pushes/s      {idle * 100:8.1f} % of a core")
    with streams(server.port, STREAMS) as events:
        open_pages = cpu_per_s(server, options.seconds)
    share = (open_pages - idle) * 100
    print(f"  {STREAMS} event streams more    {share:8.1f} % of a core, {sum(events)} events")
    report(f"{rate:.0f} pushes a second are read", pages(web, one, options.times, 0.05), table.median_ms)
    feed.stopped.set()
    feed.join(PATIENCE_S)
    mib = rss_bytes(server.pid) / 2**20
    verdicts = [verdict(mib, GOAL_MIB), verdict(ratio, GOAL_RATIO)]
    print(f"  memory                   {mib:8.0f} MiB: {verdicts[0]}")
    print(f"  first page to bare table {ratio:8.1f}: {verdicts[1]}")
    return verdicts


if __name__ == "__main__":
    main()
