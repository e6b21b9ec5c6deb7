"""Ingest into an object store, and read the result back.

Usage: ingest_to_store.py BOOTSTRAP DATASET CHECKPOINT. Prints JSON: the error for a checkpoint that Spark
cannot write, the result of verification, and the number of points by family.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace

from quick_session import local_session
from small_session import SMALL
from spark_topics import TOPIC

from odradek_spark.ingest.failures import IngestFailed
from odradek_spark.ingest.run import run_ingest
from odradek_spark.ingest.settings import IngestSettings
from odradek_spark.jobs.verify import run_verify
from odradek_spark.load import load_dataset


def main(bootstrap: str, dataset: str, checkpoint: str) -> None:
    spark = local_session("store", "local[2]", SMALL)
    given = IngestSettings(bootstrap_servers=bootstrap, dataset=dataset, topic=TOPIC)
    refused = ""
    try:
        run_ingest(spark, given, once=True)
    except IngestFailed as error:
        refused = str(error)
    run_ingest(spark, replace(given, checkpoint=checkpoint), once=True)
    verified = run_verify(spark, dataset).text()
    families = load_dataset(spark, dataset).groupBy("family", "hour").count().collect()
    print(json.dumps({"refused": refused, "verified": verified, "families": families}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
