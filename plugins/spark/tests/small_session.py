"""Settings of Spark for tests: a plan for a few rows costs more than its execution."""

from __future__ import annotations

from collections.abc import Mapping

SMALL: Mapping[str, str] = {
    # nor is it worth to optimize code that runs once
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m",
    "spark.sql.shuffle.partitions": "2",
    # code that is generated and compiled for each plan runs once, on a few rows
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # would plan again after each stage
    "spark.sql.adaptive.enabled": "false",
}
"""The same operators. Programs that a test starts as a user does have the settings of a user."""
