"""The settings of the tables of odradek-spark, and of one question to them."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.settings import declare
from odradek_console.setting_kinds import COUNT, SECONDS, TABLES


@dataclass(frozen=True, slots=True, kw_only=True)
class TablesSettings:
    """The path or URI of the tables, and the bounds of one question."""

    # fmt: off
    path: str = declare(
        "tables", TABLES, "", "Path or URI of the dataset of odradek-spark: plots of a client then go back "
        "30 days.", unset="none", page="#older-points",
    )
    max_rows: int = declare(
        "tables.max.rows", COUNT, 5_000_000, "Points of a client that a question to the tables reads.",
        unit="points",
    )
    max_bytes: int = declare(
        "tables.max.bytes", COUNT, 1 << 30, "Size of the files that a question to the tables reads.",
        unit="bytes",
    )
    timeout_s: float = declare(
        "tables.timeout.ms", SECONDS, 10.0, "Time of a question to the tables.", unit="ms",
        option="--tables-timeout",
    )
    # fmt: on
