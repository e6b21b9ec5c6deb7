"""What a user of Spark writes, in a session of Spark's own, with nothing of this package but its functions.

Usage: four_lines.py FORMAT BOOTSTRAP TOPIC FOLDER JARS. The topic has 40 pushes in two partitions.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from odradek_spark import points

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SOURCE, BOOTSTRAP, TOPIC, FOLDER, JARS = sys.argv[1:]
OPTIONS = {"kafka.bootstrap.servers": BOOTSTRAP, "subscribe": TOPIC, "includeHeaders": "true"}
OPTIONS |= json.loads(os.environ.get("LOGIN", "{}"))


def loaded(spark: SparkSession, **options: str) -> DataFrame:
    source = spark.readStream.format(SOURCE).options(**OPTIONS)
    return source.options(**({"startingOffsets": "earliest"} | options)).load()


def written(rows: DataFrame, path: str, checkpoint: str) -> int | str:
    """Run a query to the end of the topic; the rows that the sink got, or the query's error.

    Spark gives a Python worker ten seconds to connect, which a busy machine may exceed before the first
    batch. As a supervisor would, this starts the query a second time, unless it was refused.
    """
    error = ""
    for _ in range(2):
        writer = rows.writeStream.format("odradek").option("path", f"{FOLDER}/{path}")
        writer.option("checkpointLocation", f"{FOLDER}/{checkpoint}")
        query = writer.trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        except PySparkException as failed:
            error = str(failed)
            print(error, file=sys.stderr)
            if "[ODRADEK_" in error or query.lastProgress is not None:
                break
        else:
            return sum(each.numInputRows for each in query.recentProgress)
    return error


def refused(spark: SparkSession, **options: str) -> str:
    try:
        loaded(spark, **options)
    except PySparkException as error:
        return str(error)
    return ""


def main() -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "1").config("spark.jars", JARS).getOrCreate()
    raw = loaded(spark)
    found: dict[str, object] = {"columns": [each.simpleString() for each in raw.schema]}
    found["first"] = written(raw, "tables", "first")
    found["new checkpoint"] = written(loaded(spark, maxOffsetsPerTrigger="10"), "tables", "second")
    found["points"] = written(points(raw).where("name like '%.1'"), "points", "fourth")

    batch = spark.read.format(SOURCE).options(**OPTIONS).load()
    batch.write.format("odradek").mode("append").save(f"{FOLDER}/tables")
    found["rows"] = [batch.count(), points(batch).count()]
    if SOURCE == "odradek":
        found["unknown"] = refused(spark, startingOffset="earliest")
        found["of java"] = refused(spark, **{"kafka.sasl.jaas.config": "x"})
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()
