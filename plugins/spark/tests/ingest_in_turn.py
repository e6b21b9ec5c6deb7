"""Ingest a topic through sources in turn, in one session, and write more records in between.

Usage: ingest_in_turn.py BOOTSTRAP DATASET JARS COUNT MORE SOURCE... The topic has COUNT records first, and
MORE after each turn.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from ingested import every, is_exactly, settings
from small_session import SMALL
from spark_topics import fill, records

from odradek_spark.ingest.run import run_ingest
from odradek_spark.ingest.session import archive_path, local_session

MOST_BYTES = {"odradek": 20_000, "kafka": 1_000_000}
"""Of a batch."""


def main(bootstrap: str, dataset: Path, jars: str, count: int, more: int, sources: list[str]) -> None:
    session = local_session("in turn", "local[2]", {**SMALL, "spark.jars": jars}, archive=archive_path())
    for source in sources:
        given = settings(bootstrap, dataset, max_bytes_per_trigger=MOST_BYTES[source], source=source)
        run_ingest(session, given, once=True, say=lambda line: print(line, flush=True))
        # the other source has another kind of checkpoint: the tables know where to continue
        shutil.rmtree(dataset / "_checkpoints")
        assert is_exactly(dataset, every(count, 2)), source
        fill(bootstrap, records(more, first=count, partitions=2))
        count += more
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6:])
