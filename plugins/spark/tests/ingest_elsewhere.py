"""Ingest once with another kind of session.

Usage: ingest_elsewhere.py MASTER|connect BOOTSTRAP DATASET [JARS]. With jars it reads through Spark's own
source.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ingested import settings

from odradek_spark.ingest.run import run_ingest
from odradek_spark.ingest.session import archive_path, local_session, prepare_environment, remote_session


def main(master: str, bootstrap: str, dataset: str, jars: str = "") -> None:
    if master == "connect":
        prepare_environment("127.0.0.1")
        session = remote_session("local[2]")
    else:
        more = {"spark.jars": jars} if jars else None
        session = local_session("elsewhere", master, more, archive=archive_path())
    source = "kafka" if jars else "odradek"
    given = settings(
        bootstrap, Path(dataset), max_bytes_per_trigger=1_000_000 if jars else 20_000, source=source
    )
    run_ingest(session, given, once=True, say=lambda line: print(line, flush=True))
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
