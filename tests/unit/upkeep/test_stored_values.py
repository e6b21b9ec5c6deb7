"""Values in the metadata file that no host writes: the start is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from odradek.plugin.config import ConfigError
from odradek.security.standard_authorizer import StandardAuthorizer
from odradek.transaction.transaction_metadata import TransactionMetadata
from odradek.upkeep.storage import Storage
from support.broker import make_broker

ONGOING = TransactionMetadata(transactional_id="t", producer_id=1, partitions=frozenset({("orders", 0)}))


def text_of(**changes: Any) -> str:
    """The stored form of a transaction with some fields changed."""
    return json.dumps(json.loads(ONGOING.to_text()) | changes)


@pytest.mark.parametrize(
    ("statement", "values", "problem"),
    [
        pytest.param(
            "insert into credentials values ('bob', 0, x'00', x'00', x'00', 4096)",
            (),
            "0 is not a valid ScramMechanism",
            id="mechanism",
        ),
        pytest.param(
            "insert into acls values (2, 'orders', 3, 'User:bob', '*', 99, 3)",
            (),
            "99 is not a valid AclOperation",
            id="operation",
        ),
        *(
            pytest.param(
                "insert into transactions values ('t', ?)", (text,), "transactional id 't'", id=f"{what}"
            )
            for what, text in {
                "state": text_of(state="Ended"),
                "missing field": text_of().replace('"producer_id"', '"producer_ix"'),
                "number as text": text_of(timeout_ms="1"),
                "partition": text_of(partitions=[["orders"]]),
                "not an object": "[]",
            }.items()
        ),
    ],
)
def test_a_stored_value_that_no_host_writes_is_one_line(
    tmp_path: Path, statement: str, values: tuple[str, ...], problem: str
) -> None:
    storage = Storage(tmp_path, 0)
    make_broker(stores=storage, authorizer=StandardAuthorizer())
    storage.metadata.connection.execute(statement, values)

    with pytest.raises(ConfigError, match=r"metadata\.db is damaged: ") as refusal, storage.loading():
        make_broker(stores=storage, authorizer=StandardAuthorizer()).transactions.start()

    assert problem in str(refusal.value)
    assert "\n" not in str(refusal.value)
    storage.close()
