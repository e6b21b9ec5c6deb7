"""Options of the source: their parsed values, and the errors for invalid ones."""

from __future__ import annotations

import pytest

from odradek_spark.source.options import OptionError, Rows, read_options

SERVERS = {"bootstrap.servers": "b:9092"}


def test_options_are_case_insensitive_and_typed() -> None:
    given = {
        "Topic": "t",
        "MAXBYTESPERTRIGGER": "10",
        "failondataloss": "False",
        "rows": "records",
        "kafka.security.protocol": "SSL",
        "path": "ignored",
    }

    found = read_options(SERVERS | given)

    assert (found.topic, found.max_bytes_per_trigger, found.fail_on_data_loss) == ("t", 10, False)
    assert found.rows is Rows.RECORDS
    assert found.client == {"bootstrap.servers": "b:9092", "security.protocol": "SSL"}


def test_servers_can_be_given_as_an_option_of_the_client() -> None:
    given = {"kafka.bootstrap.servers": "b:1"}

    found = read_options(given)

    assert found.client == {"bootstrap.servers": "b:1"}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"bootstrap.servers": ""}, "bootstrap.servers is missing"),
        ({"topik": "t"}, "unknown option 'topik'; known are dataset, "),
        ({"rows": "manifests"}, "the option dataset is missing"),
        ({"rows": "columns"}, "option rows: 'columns'"),
        ({"minBytesPerTrigger": "1M"}, "option minbytespertrigger: "),
        ({"failOnDataLoss": "no"}, "option failondataloss: expected true or false"),
        ({"startingOffsets": "5"}, "option startingoffsets: expected earliest or latest"),
    ],
)
def test_invalid_options_are_reported(given: dict[str, str], problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        read_options(SERVERS | given)
