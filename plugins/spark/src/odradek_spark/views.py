"""The views of `odradek_tables.query.views` in a session of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek_spark.load import load_dataset
from odradek_tables.dataset import Dataset
from odradek_tables.query.views import NEAR_PUSHES, VIEWS, WAY, WAYS, WAYS_OF_SPARK
from odradek_tables.schemas import BY_NAME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register_views(spark: SparkSession, root: str) -> None:
    """Register the tables of a dataset, by its path or URI, and the views in a session, under their names.

    They keep their current versions: call again to see newer rows.
    """
    dataset = Dataset(root)
    dataset.create(list(BY_NAME.values()))
    for name in BY_NAME:
        load_dataset(spark, root, name).createOrReplaceTempView(name)
    spark.table("pushes").createOrReplaceTempView(NEAR_PUSHES)
    for name, query in VIEWS.items():
        spark.sql(of_spark(query)).createOrReplaceTempView(name)


def of_spark(query: str) -> str:
    found = query.replace("date_diff('millisecond'", "timestampdiff(MILLISECOND")
    found = found.replace("json_extract_string(", "get_json_object(")
    return found.replace(WAYS.format(WAY), WAYS_OF_SPARK.format(WAY))
