"""The conditions of errors: their names, and what Spark shows of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from odradek_spark.conditions import Condition, without_condition
from odradek_spark.sink.commit import NotShared, TableConflict
from odradek_spark.sink.written import SeveralTopics
from odradek_spark.source.offsets import ForeignOffsets
from odradek_spark.source.options import OptionError
from odradek_spark.source.topic import DataLoss, TopicError, Unreachable

README = Path(__file__).parents[1] / "README.md"
CLASSES: dict[str, type[Condition]] = {
    "ODRADEK_OPTION": OptionError,
    "ODRADEK_NO_TOPIC": TopicError,
    "ODRADEK_UNREACHABLE": Unreachable,
    "ODRADEK_DATA_LOSS": DataLoss,
    "ODRADEK_CHECKPOINT": ForeignOffsets,
    "ODRADEK_TABLE_CONFLICT": TableConflict,
    "ODRADEK_SEVERAL_TOPICS": SeveralTopics,
    "ODRADEK_NOT_SHARED": NotShared,
}


def test_readme_has_each_condition() -> None:
    assert re.findall(r"ODRADEK_[A-Z_]+", README.read_text(encoding="utf-8")) == list(CLASSES)


@pytest.mark.parametrize(("condition", "error"), CLASSES.items())
def test_an_error_begins_with_its_condition_and_has_one_line(condition: str, error: type[Condition]) -> None:
    raised = error("topic t:\n  no answer")

    assert (error.condition, str(raised)) == (condition, f"[{condition}] topic t: no answer")
    assert without_condition(str(raised)) == "topic t: no answer"
