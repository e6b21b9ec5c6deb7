"""Writes the class-data archive of Spark's JVM and waits until it is whole."""

from __future__ import annotations

from odradek_spark.ingest.session import archive_path, local_session


def main() -> None:
    session = local_session("class archive", "local[1]", archive=archive_path())
    session.range(10).selectExpr("sum(id)").collect()
    gateway = session.sparkContext._gateway
    session.stop()
    assert gateway is not None
    gateway.shutdown()
    # the JVM writes the archive after its standard input has ended
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    main()
