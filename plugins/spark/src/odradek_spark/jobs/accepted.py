"""Excludes repeated pushes: a client that did not receive the answer sends its push again."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from odradek_spark.views import of_spark
from odradek_tables.query import views

SOURCE_KEY = ["src_partition", "src_offset"]
"""The key of a record."""
PUSH_KEY = [*SOURCE_KEY, "client_instance_id"]
"""The key of a push: a record of OTLP has one for each client."""
OF_PUSH = ["push_interval_ms", "terminating"]
"""The columns of a push that its points get."""


def repeated(pushes: DataFrame) -> DataFrame:
    """The keys of the repeated pushes in the table ``pushes``, as the views of the tables have them."""
    return pushes.sparkSession.sql(of_spark(views.repeated("{pushes}")), pushes=pushes)


def counted(points: DataFrame, pushes: DataFrame) -> DataFrame:
    """The points of pushes that count. No point is moved: the keys of repeated pushes are few.

    Args:
        points: Rows of the table ``points``.
        pushes: The table ``pushes``: those of the points, and of two push intervals before.
    """
    return points.join(F.broadcast(repeated(pushes)), PUSH_KEY, "left_anti").select(*points.columns)


def accepted(points: DataFrame, pushes: DataFrame) -> DataFrame:
    """The points of pushes that count; points without their push are left out.

    No table passes through the driver: the pushes of a large fleet do not fit there.

    Returns:
        The columns of ``points``; of their push ``push_interval_ms`` int and ``terminating`` boolean; and
        ``first_ts`` timestamp, the first push of the instance in ``pushes``.
    """
    first = F.min("recv_ts").over(Window.partitionBy("client_instance_id"))
    of_push = pushes.select(*PUSH_KEY, *OF_PUSH, first.alias("first_ts"))
    counting = points.join(of_push, PUSH_KEY).join(repeated(pushes), PUSH_KEY, "left_anti")
    return counting.select(*points.columns, *OF_PUSH, "first_ts")
