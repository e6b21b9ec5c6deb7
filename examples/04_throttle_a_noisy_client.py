"""Throttles a noisy client but not its neighbor: two real producers, and a quota for one of them.

Run it: ``python examples/04_throttle_a_noisy_client.py`` (needs ``odradek[demo]``). Takes a few
seconds. With ``odradek serve`` the quota is set by::

    odradek quotas --bootstrap-server localhost:9092 --alter --client noisy \\
        --add-config producer_byte_rate=1000000
"""

from __future__ import annotations

import threading
import time

from confluent_kafka import Producer

from odradek import testing

WANTED_BYTES_PER_S, QUOTA_BYTES_PER_S = 3_000_000, 1_000_000
VALUE = b"v" * 9_900
SKIPPED_S, MEASURED_S = 2, 6
"""A client that has been quiet may write two seconds' worth at once, so the beginning is not measured."""


class Client(threading.Thread):
    """An unmodified producer, which writes at a steady rate as long as its queue has room."""

    def __init__(self, bootstrap: str, client_id: str) -> None:
        super().__init__(name=client_id)
        self.bytes_by_second = [0] * (SKIPPED_S + MEASURED_S)
        self.settings = {
            "bootstrap.servers": bootstrap, "client.id": client_id, "linger.ms": 20, "log_level": 3,
            "batch.size": 100_000, "queue.buffering.max.kbytes": 1_000,
        }  # fmt: skip
        self.start()

    def run(self) -> None:
        producer, begin_s, written = Producer(self.settings), time.monotonic(), 0

        def delivered(error: object, _message: object) -> None:
            second = int(time.monotonic() - begin_s)
            if error is None and second < len(self.bytes_by_second):
                self.bytes_by_second[second] += len(VALUE)

        while (elapsed_s := time.monotonic() - begin_s) < len(self.bytes_by_second):
            if written < elapsed_s * WANTED_BYTES_PER_S and len(producer) < 90:
                written += len(VALUE)
                producer.produce("events", VALUE, on_delivery=delivered)
            producer.poll(0 if len(producer) < 90 else 0.01)
        producer.purge()


with testing.host(quota_window_num=3) as host:
    host.quota(client_id="noisy", producer_byte_rate=QUOTA_BYTES_PER_S)
    clients = [Client(host.bootstrap, client_id) for client_id in ("noisy", "neighbor")]
    for client in clients:
        client.join()
        rate = sum(client.bytes_by_second[SKIPPED_S:]) / MEASURED_S
        held = "throttled" if rate < WANTED_BYTES_PER_S / 2 else "as it wants"
        print(f"{client.name} writes {rate / 1e6:.1f} MB a second: {held}")
