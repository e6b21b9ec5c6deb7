from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Any

import pytest

from odradek.metadata.store import MetadataStore
from odradek.metadata.transaction_store import SqliteTransactionStore
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.init_producer_id import InitProducerIdRequest
from support.broker import BrokerClient, make_broker

LAST_SERVED = 5
INVALID = (ErrorCode.INVALID_REQUEST, -1, -1)


def ask(client: BrokerClient, version: int = LAST_SERVED, **fields: Any) -> tuple[int, int, int]:
    response = client.send(InitProducerIdRequest(**({"transactional_id": None} | fields)), version)
    return response.error_code, response.producer_id, response.producer_epoch


@pytest.mark.parametrize("version", range(LAST_SERVED + 1))
def test_every_producer_gets_its_own_id_in_epoch_0(version: int) -> None:
    client = BrokerClient()

    answers = [ask(client, version) for _ in range(3)]

    assert answers == [(0, 0, 0), (0, 1, 0), (0, 2, 0)]


@pytest.mark.parametrize("timeout_ms", [0, -1, 2**31 - 1, -(2**31)])
def test_without_a_transactional_id_the_timeout_is_ignored(timeout_ms: int) -> None:
    answer = ask(BrokerClient(), transaction_timeout_ms=timeout_ms)

    assert answer == (0, 0, 0)


def test_without_a_transactional_id_the_previous_producer_is_ignored() -> None:
    answer = ask(BrokerClient(), producer_id=77, producer_epoch=3)

    assert answer == (0, 0, 0)


@pytest.mark.parametrize(("producer_id", "epoch"), [(77, -1), (-1, 3)])
def test_a_producer_id_without_an_epoch_is_refused(producer_id: int, epoch: int) -> None:
    answer = ask(BrokerClient(), producer_id=producer_id, producer_epoch=epoch)

    assert answer == INVALID


@pytest.mark.parametrize("version", range(LAST_SERVED + 1))
def test_an_empty_transactional_id_is_refused(version: int) -> None:
    answer = ask(BrokerClient(), version, transactional_id="", transaction_timeout_ms=1_000)

    assert answer == INVALID


@pytest.mark.parametrize("version", range(LAST_SERVED + 1))
def test_a_transactional_id_keeps_its_producer_id_and_gets_the_next_epoch(version: int) -> None:
    client = BrokerClient()

    answers = [ask(client, version, transactional_id="tx", transaction_timeout_ms=1_000) for _ in range(3)]

    assert answers == [(0, 0, 0), (0, 0, 1), (0, 0, 2)]


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001, 2**31 - 1])
def test_an_invalid_transaction_timeout_is_refused(timeout_ms: int) -> None:
    answer = ask(BrokerClient(), transactional_id="tx", transaction_timeout_ms=timeout_ms)

    assert answer == (ErrorCode.INVALID_TRANSACTION_TIMEOUT, -1, -1)


@pytest.mark.parametrize(
    ("version", "code"), [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)]
)
def test_a_fenced_producer_cannot_continue(version: int, code: ErrorCode) -> None:
    client = BrokerClient()
    wanted: dict[str, Any] = {"transactional_id": "tx", "transaction_timeout_ms": 1_000}
    for _ in range(2):
        ask(client, **wanted)

    answer = ask(client, version, producer_id=0, producer_epoch=0, **wanted)

    assert answer == (code, -1, -1)


def test_a_transactional_id_survives_a_restart(tmp_path: Any) -> None:
    def restarted() -> BrokerClient:
        metadata = opened.enter_context(closing(MetadataStore(path)))
        transactions = opened.enter_context(closing(SqliteTransactionStore(path)))
        return BrokerClient(make_broker(tmp_path / "logs", metadata=metadata, transactions=transactions))

    path = tmp_path / "metadata.db"
    wanted: dict[str, Any] = {"transactional_id": "tx", "transaction_timeout_ms": 1_000}

    with ExitStack() as opened:
        answers = [ask(restarted(), **wanted) for _ in range(3)]

    assert answers == [(0, 0, 0), (0, 0, 1), (0, 0, 2)]


def test_a_restart_never_reuses_an_id(tmp_path: Any) -> None:
    store = MetadataStore(tmp_path / "metadata.db")
    before = {ask(BrokerClient(make_broker(metadata=store)))[1] for _ in range(3)}
    store.close()

    again = MetadataStore(tmp_path / "metadata.db")

    assert ask(BrokerClient(make_broker(metadata=again)))[1] not in before
    again.close()


def test_an_id_that_cannot_be_stored_is_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    client = BrokerClient()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(MetadataStore, "put_value", fail)

    answer = ask(client)

    assert answer == (ErrorCode.UNKNOWN_SERVER_ERROR, -1, -1)
