"""The keys of ``[plugins.spark]``, from which the options of ``odradek spark run`` are made, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Any, Final

from odradek.settings import FILE, INT, LONG, Flag, Items, Whole, declare
from odradek_spark.ingest.settings import IngestSettings
from odradek_tables.levels import BY_CLIENT, CLIENT_METRICS
from odradek_tables.retention import KEPT_DAYS

DAYS: Final = {
    table: declare(
        f"retention.days.{table}", Whole(INT), days, f"Retention of the table `{table}`.", unit="days"
    )
    for table, days in KEPT_DAYS.items()
}
Retention: Final[Any] = make_dataclass(
    "Retention", [(table, int, each) for table, each in DAYS.items()], frozen=True, kw_only=True
)
"""The days that each table keeps. The command has one option for all: ``--retention-days TABLE=DAYS``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings(IngestSettings):
    """The pipeline beside a host."""

    # fmt: off
    maintenance_interval_ms: int = declare(
        "maintenance.interval.ms", Whole(LONG, 1000), 300_000,
        "Time between two updates of rollups and inventory, and two compactions of past hours.", unit="ms",
    )
    rules_file: Path | None = declare(
        "rules.file", FILE, None,
        "TOML file with more rules for anomalies. A rule with the id of a default rule replaces it.",
        unset="none", page="#anomalies",
    )
    default_rules: bool = declare(
        "default.rules", Flag(), True, "Detect the troubles that the documentation lists.",
        page="#anomalies",
    )
    rollup_client_metrics: Sequence[str] = declare(
        "rollup.client.metrics", Items(least=1), CLIENT_METRICS,
        "Prefixes of the metrics that `rollup_1h` keeps by client; `*` for all.",
        unset="the standard metrics of KIP-714, and those of errors, retries, rebalances, lag and volume",
        page="#levels-of-the-rollups",
    )
    rollup_fleet_labels: Sequence[str] = declare(
        "rollup.fleet.labels", Items(BY_CLIENT), (),
        "Labels that the rollups of the fleet keep, which grow with the number of their values: `client_id`, "
        "`group_id`.", unset="none",
    )
    # fmt: on
