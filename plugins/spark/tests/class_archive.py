"""Writes the class-data archive of Spark's JVM and waits until it is whole.

The archive has the classes that this run loads, so the run ingests a batch.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from ingested import settings
from quick_session import local_session
from spark_topics import TOPIC, fill, records

import odradek.testing
from odradek_spark.ingest.run import run_ingest


def main() -> None:
    session = local_session("class archive", "local[1]")
    session.range(10).selectExpr("sum(id)").collect()
    with odradek.testing.host() as host, tempfile.TemporaryDirectory() as folder:
        host.topics.create(TOPIC)
        fill(host.bootstrap, records(1))
        run_ingest(session, settings(host.bootstrap, Path(folder)), once=True)
    gateway = session.sparkContext._gateway
    session.stop()
    assert gateway is not None
    gateway.shutdown()
    # the JVM writes the archive after its standard input has ended
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    main()
