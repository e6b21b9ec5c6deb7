"""librdkafka's mock broker in its own process: the C peer of the push bench.

The mock cluster is part of librdkafka; the copy in the confluent-kafka wheel is loaded through ctypes. For
each push it checks the ids, decompresses the payload and decodes it with nanopb; it has no labels, no
throttling and no receivers. It runs with ``log_level`` 0, so that it prints nothing.

Prints ``ready port=N`` and ends when standard input closes.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path

PRODUCER = 0
PUSH_INTERVAL_MS = 1000


def library_path() -> Path | None:
    """The librdkafka of the installed confluent-kafka wheel; None without one."""
    spec = importlib.util.find_spec("confluent_kafka")
    if spec is None or spec.origin is None:
        return None
    beside = Path(spec.origin).parent.parent / "confluent_kafka.libs"
    return next(iter(sorted(beside.glob("librdkafka*.so*"))), None)


def load(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    library.rd_kafka_conf_new.restype = c_void_p
    library.rd_kafka_conf_set.argtypes = [c_void_p, c_char_p, c_char_p, c_char_p, c_size_t]
    library.rd_kafka_new.argtypes = [c_int, c_void_p, c_char_p, c_size_t]
    library.rd_kafka_new.restype = c_void_p
    library.rd_kafka_mock_cluster_new.argtypes = [c_void_p, c_int]
    library.rd_kafka_mock_cluster_new.restype = c_void_p
    library.rd_kafka_mock_cluster_bootstraps.argtypes = [c_void_p]
    library.rd_kafka_mock_cluster_bootstraps.restype = c_char_p
    library.rd_kafka_mock_telemetry_set_requested_metrics.argtypes = [c_void_p, POINTER(c_char_p), c_size_t]
    library.rd_kafka_mock_telemetry_set_push_interval.argtypes = [c_void_p, c_int64]
    return library


def start(library: ctypes.CDLL) -> str:
    """A cluster of one broker that requests all metrics; returns its ``host:port``."""
    reason = ctypes.create_string_buffer(512)
    settings = library.rd_kafka_conf_new()
    library.rd_kafka_conf_set(settings, b"log_level", b"0", reason, len(reason))
    handle = library.rd_kafka_new(PRODUCER, settings, reason, len(reason))
    if not handle:
        raise RuntimeError(reason.value.decode())
    cluster = library.rd_kafka_mock_cluster_new(handle, 1)
    library.rd_kafka_mock_telemetry_set_requested_metrics(cluster, (c_char_p * 1)(b""), 1)
    library.rd_kafka_mock_telemetry_set_push_interval(cluster, PUSH_INTERVAL_MS)
    bootstraps: bytes = library.rd_kafka_mock_cluster_bootstraps(cluster)
    return bootstraps.decode()


def main() -> None:
    path = library_path()
    if path is None:
        sys.exit("the mock broker needs confluent-kafka")
    port = start(load(path)).rpartition(":")[2]
    print(f"ready port={port}", flush=True)
    sys.stdin.read()
    os._exit(0)  # the cluster has threads that only its destruction would end


if __name__ == "__main__":
    main()
