"""Throttles a noisy client but not its neighbor: two real producers, and a quota for one of them.

Run it: ``python examples/04_throttle_a_noisy_client.py`` (needs ``odradek[demo]``). Takes a few
seconds. With ``odradek serve`` the quota is set by::

    odradek quotas --bootstrap-server localhost:9092 --alter --client noisy \\
        --add-config producer_byte_rate=1000000
"""

from __future__ import annotations

import threading
import time

from confluent_kafka import Producer, ThrottleEvent

from odradek import testing

WANTED_BYTES_PER_S = 3_000_000
"""Rate at which both clients try to write."""
QUOTA_BYTES_PER_S = 1_000_000
VALUE = b"v" * 9_900
SKIPPED_S, MEASURED_S = 2, 6
"""A client that has been quiet may write two seconds' worth at once, so the beginning is not measured."""


class Client(threading.Thread):
    """An unmodified producer. Throttle times in responses are all it learns about quotas."""

    def __init__(self, bootstrap: str, client_id: str) -> None:
        super().__init__(name=client_id)
        self.delivered_bytes = 0
        self.throttles_ms: list[float] = []
        self.bootstrap = bootstrap
        self.start()

    def throttled(self, event: ThrottleEvent) -> None:
        if event.throttle_time > 0:
            self.throttles_ms.append(event.throttle_time * 1000)

    def delivered(self, error: object, _message: object) -> None:
        self.delivered_bytes += 0 if error else len(VALUE)

    def run(self) -> None:
        """Write at a steady rate, and skip records while the client's queue is full."""
        producer = Producer({
            "bootstrap.servers": self.bootstrap, "client.id": self.name, "linger.ms": 20,
            "batch.size": 100_000, "queue.buffering.max.kbytes": 1_000, "log_level": 3,
            "throttle_cb": self.throttled,
        })  # fmt: skip
        begin_s, written = time.monotonic(), 0
        while (elapsed_s := time.monotonic() - begin_s) < SKIPPED_S + MEASURED_S:
            try:
                while written < elapsed_s * WANTED_BYTES_PER_S:
                    written += len(VALUE)
                    producer.produce("events", VALUE, on_delivery=self.delivered)
            except BufferError:
                pass
            producer.poll(0.01)
        producer.purge()
        producer.poll(0)


def main() -> None:
    with testing.host(quota_window_num=3) as host:
        host.quota(client_id="noisy", producer_byte_rate=QUOTA_BYTES_PER_S)
        clients = [Client(host.bootstrap, client_id) for client_id in ("noisy", "neighbor")]
        time.sleep(SKIPPED_S)
        before = [client.delivered_bytes for client in clients]
        for client in clients:
            client.join()
    print(
        f"both try to write {in_mb(WANTED_BYTES_PER_S)} a second; noisy may write {in_mb(QUOTA_BYTES_PER_S)}"
    )
    for client, begin in zip(clients, before, strict=True):
        rate = (client.delivered_bytes - begin) / MEASURED_S
        waited_s = sum(client.throttles_ms) / 1000
        print(f"{client.name} wrote {in_mb(rate)} a second; the host throttled it for {waited_s:.1f} s")
    print("throttled:", ", ".join(client.name for client in clients if client.throttles_ms))


def in_mb(size: float) -> str:
    return f"{size / 1e6:.1f} MB"


if __name__ == "__main__":
    main()
