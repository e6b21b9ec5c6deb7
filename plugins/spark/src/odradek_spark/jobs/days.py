"""Days of UTC, whatever the time zone of the session is."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

DAY_S: Final = 86_400


def utc_day(column: str) -> Column:
    """The day of a timestamp in UTC as text: ``YYYY-MM-DD``."""
    days = F.floor(F.unix_seconds(column) / DAY_S).cast("int")
    return F.date_from_unix_date(days).cast("string")
