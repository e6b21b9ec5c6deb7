"""Count the rows of tables that filters select, read by Spark with Delta's own jar.

Arguments: the jars, and the root of a dataset. Standard input: conditions by table and number. The last line
of the output has the counts.
"""

from __future__ import annotations

import json
import sys
from functools import reduce

from quick_session import local_session
from small_session import SMALL


def main() -> None:
    jars, root = sys.argv[1:]
    settings = {
        **SMALL,
        "spark.jars": jars,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.parquet.enableVectorizedReader": "false",
    }
    spark = local_session("delta", "local[2]", settings)
    found = {}
    for name, conditions in json.load(sys.stdin).items():
        rows = spark.read.format("delta").load(f"{root}/{name}")
        selected = [rows.where(each).selectExpr(f"{at} AS at") for at, each in conditions.items()]
        every = reduce(lambda one, other: one.unionAll(other), selected)
        found[name] = {row["at"]: row["count"] for row in every.groupBy("at").count().collect()}
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
