"""A console whose fleet was pushed in this process, for `bench.console_pages`: it serves pages and reads a
topic.

Prints ``ready port=N`` when the fleet is known; when standard input closes it stops and prints its figures as
JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from types import TracebackType

from bench.console_fleet import INTERVAL_S, Pushes
from odradek.client.admin import AdminClient
from odradek.endpoints import Address
from odradek_console.view import View, ViewSettings
from odradek_console.web.app import make_app
from odradek_console.web.console import make_console
from odradek_console.web.server import WebServer
from odradek_console.web.server_settings import ServerSettings

CHECKED = 1_000
"""Rows that are made at a time, as the reader does it."""


class TimedLock:
    """A lock that knows how long it was held."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.longest: dict[str, float] = {}
        """Seconds, by the thread that held it."""
        self.since_s = 0.0

    def __enter__(self) -> None:
        self.lock.acquire()
        self.since_s = time.perf_counter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        held_s = time.perf_counter() - self.since_s
        name = "reader" if threading.current_thread().name == "telemetry-reader" else "pages"
        self.longest[name] = max(held_s, self.longest.get(name, 0.0))
        self.lock.release()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--series", type=int, required=True)
    parser.add_argument("--pushes", type=int, required=True)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    options = parser.parse_args()

    def connect() -> AdminClient:
        return AdminClient(options.bootstrap)

    view = View(connect, ViewSettings(topic=options.topic))
    began_s = time.time()
    begin_s = int(began_s) - (options.pushes + 1) * INTERVAL_S
    pushes = Pushes(options.clients, options.series, begin_s)
    spent_s = 0.0
    for turn in range(options.pushes):
        for record in pushes.turn(turn):
            before_s = time.process_time()
            view.fleet.add(record)
            spent_s += time.process_time() - before_s
    late_ms = int((time.time() - began_s) * 1000)
    view.now_ms = lambda: time.time_ns() // 1_000_000 - late_ms
    while not view.rows.check(CHECKED, view.now_ms()):
        pass
    lock = TimedLock()
    view.lock = view.reader.lock = lock  # type: ignore[assignment]
    console = make_console(view, connect, options.bootstrap)
    server = WebServer(
        make_app(console),
        ServerSettings(address=Address("127.0.0.1", 0)),
        lambda url: print(f"ready port={url.rstrip('/').rpartition(':')[2]}", flush=True),
    )

    def stop() -> None:
        sys.stdin.read()
        console.stopping.set()
        server.stop()

    threading.Thread(target=stop, daemon=True).start()
    with console:
        server.run_until_stopped()
    figures = {
        "push_us": spent_s * 1e6 / max(1, options.pushes * options.clients),
        "held_ms": {name: held_s * 1e3 for name, held_s in lock.longest.items()},
        "records": view.fleet.counts.records - options.pushes * options.clients,
        "scale": view.fleet.scale,
        "held_mib": view.fleet.held_bytes / 2**20,
    }
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
