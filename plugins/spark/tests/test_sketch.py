"""Sketches of instances: the same as those of Apache DataSketches, which Spark and older rollups have."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from odradek_spark.jobs.sketch import sketch, union

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OF_LIBRARY = {
    0: "0201070a030c0008",
    1: "0201070a03080108061f950b",
    8: "0301070a0508000908000000",
    96: "0301070a0708000960000000",
}
"""Sketches by the library of clients 0 to n - 1, without the coupons of a set."""

REGISTERS_OF_LIBRARY = "773627e15318ff0ab7200a4882225ef8356290145b7f80a22cf684f946e184ab"


def texts(count: int) -> list[str]:
    return [f"client-{number}" for number in range(count)]


@pytest.mark.parametrize("count", OF_LIBRARY)
def test_few_texts_are_listed_as_by_the_library(count: int) -> None:
    found = sketch(texts(count))

    assert found.hex().startswith(OF_LIBRARY[count])
    assert len(found) == (8 if count < 8 else 12) + 4 * count


def test_many_texts_have_the_registers_of_the_library() -> None:
    found = sketch(texts(5000))

    assert len(found) == 40 + 1024
    assert hashlib.sha256(found[40:]).hexdigest() == REGISTERS_OF_LIBRARY


def test_texts_count_once_and_in_any_order() -> None:
    assert sketch([*reversed(texts(200)), *texts(200)]) == sketch(texts(200))


@pytest.mark.parametrize("counts", [(3, 4), (7, 8), (50, 90), (90, 97), (120, 5000), (5000, 1), (0, 0), (5,)])
def test_a_union_is_the_sketch_of_all_texts(counts: tuple[int, ...]) -> None:
    united = union([sketch(texts(each)) for each in counts])

    assert united == sketch(texts(max(counts)))


def test_other_bytes_are_no_sketch() -> None:
    with pytest.raises(ValueError, match="not a sketch of 1024 registers of eight bits: 0301070c"):
        union([sketch(["a"]), bytes.fromhex("0301070c05080009")])


@pytest.mark.spark
def test_spark_reads_and_unites_sketches(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    counts = (0, 1, 7, 8, 96, 97, 120, 5000)
    sizes = {count: sketch(texts(count)) for count in counts}
    told = [(count, text) for count in counts for text in (None, *texts(count))]  # null is no text
    ours = spark.createDataFrame(list(sizes.items()), "size int, instances binary")
    by_spark = (
        spark.createDataFrame(told, "size int, text string")
        .groupBy("size")
        .agg(F.expr("hll_sketch_agg(text, 10)").alias("instances"))
    )
    united = ours.unionAll(by_spark).groupBy("size").agg(F.hll_union_agg("instances").alias("instances"))

    read, written, merged = (
        {
            row["size"]: (row["n"], bytes(row["instances"]))
            for row in frame.selectExpr("*", "hll_sketch_estimate(instances) AS n").collect()
        }
        for frame in (ours, by_spark, united)
    )

    for count, ours_of in sizes.items():
        assert abs(read[count][0] - count) <= 0.04 * count
        assert merged[count][0] == read[count][0]
        for theirs in (written[count][1], merged[count][1]):
            assert union([theirs, sketch([])]) == ours_of
