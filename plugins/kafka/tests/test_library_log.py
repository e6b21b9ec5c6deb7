"""The lines of librdkafka: few of a kind in the log of a host, however often it tries to connect."""

from __future__ import annotations

import logging

from confluent_kafka import Producer

from odradek.endpoints.log_lines import LibraryFilter
from odradek_kafka.producer_session import library_log


class Kept(logging.Handler):
    """Remembers the lines that the filter of a program's log lets through."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.addFilter(LibraryFilter())

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.name)


def test_seventy_lines_of_a_kind_are_one_and_another_kind_is_told_too() -> None:
    kept, library = Kept(), logging.getLogger("librdkafka")
    library.addHandler(kept)
    for _ in range(70):
        library_log.log(logging.ERROR, "%s [%s] %s", "FAIL", "rdkafka#producer-1", "connection refused")
    library_log.log(logging.ERROR, "%s [%s] %s", "ERROR", "rdkafka#producer-1", "all brokers are down")
    library.removeHandler(kept)

    assert kept.lines == ["librdkafka.FAIL", "librdkafka.ERROR"]


def test_a_client_of_librdkafka_takes_it_as_its_logger() -> None:
    kept, library = Kept(), logging.getLogger("librdkafka")
    library.addHandler(kept)
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "reconnect.backoff.ms": "1"}, logger=library_log)
    for _ in range(100):
        producer.poll(0.05)
        if "librdkafka.FAIL" in kept.lines:
            break
    library.removeHandler(kept)

    assert kept.lines.count("librdkafka.FAIL") == 1
