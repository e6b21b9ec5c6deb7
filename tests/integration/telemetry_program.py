"""A producer of any version of confluent-kafka that runs until its standard input ends.

Usage: telemetry_program.py BOOTSTRAP CLIENT_ID [KEY=VALUE ...]. It produces a record every 50 ms, so that it
has metrics to push, and prints librdkafka's log.
"""

from __future__ import annotations

import logging
import sys
import threading

import confluent_kafka


def main(bootstrap: str, client_id: str, *settings: str) -> None:
    logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.DEBUG)
    config: dict[str, object] = {"bootstrap.servers": bootstrap, "client.id": client_id}
    config |= dict(setting.split("=", 1) for setting in settings)
    producer = confluent_kafka.Producer(config, logger=logging.getLogger("librdkafka"))
    ended = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    while not ended.wait(0.05):
        producer.produce("telemetry", b"value")
        producer.poll(0)
    producer.flush(5)


if __name__ == "__main__":
    main(*sys.argv[1:])
