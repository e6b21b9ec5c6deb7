"""Apache Kafka's answers about configuration, replayed against a broker in memory.

`NEWER` holds our expected answer where we follow a newer Kafka source on purpose, or where Kafka does not
answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.broker.dispatch.routes import Routes
from odradek.wire.codec import decode
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.header import flexible_response_header, read_response_header
from support.broker import make_broker, make_connection
from support.golden import Exchange, exchanges, golden_files, golden_id
from support.headers import peek_api

OF_OTHERS = ("_topic", "_broker", "_broker_refused", "_quotas", "_quotas_refused", "_replicas")
"""Suffixes of files about other resources, which test_broker_golden.py replays."""
APIS = ("describe_configs", "incremental_alter_configs", "alter_configs", "list_config_resources")
FILES = [path for path in golden_files(*(f"{api}_v*" for api in APIS)) if not path.stem.endswith(OF_OTHERS)]
ACCEPTED = (ErrorCode.NONE, None)
NOT_RE2 = (ErrorCode.INVALID_CONFIG, "is not a valid regular expression")
TWICE = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")

NEWER: dict[tuple[str, str], tuple[ErrorCode, str | None]] = {
    # KAFKA-21041: only the first = separates
    ("incremental_alter_configs_v1_match", "SET match to 'client_id=a=b'"): ACCEPTED,
    ("incremental_alter_configs_v1_match", "SET match to 'client_id==x'"): ACCEPTED,
    ("incremental_alter_configs_v1_match", "SET match to 'client_id='"): ACCEPTED,
    # Kafka 4.5: new expressions are RE2
    ("incremental_alter_configs_v1_match", "SET match to 'client_id=(?!x).*'"): NOT_RE2,
    ("incremental_alter_configs_v1_match", "SET match to 'client_id=(?<=x)y'"): NOT_RE2,
    ("incremental_alter_configs_v1_match", r"SET match to 'client_id=(a)\\1'"): NOT_RE2,
    ("incremental_alter_configs_v1_match", "SET match to 'client_id=a++'"): NOT_RE2,
    ("incremental_alter_configs_v1_look_ahead", "look-ahead"): NOT_RE2,
    # a{1 is valid in RE2 but not in Java; the error is about the other element, which has no =
    ("incremental_alter_configs_v1_match", "SET match to 'client_id=a{1,3}'"): (
        ErrorCode.INVALID_CONFIG,
        "Illegal client matching pattern: 3}",
    ),
    # Kafka fails while it writes this refusal and never answers
    ("alter_configs_v2_duplicate_resource", "duplicate resource"): TWICE,
}
"""The expected error code and part of the message, by file and label."""
FOLLOWING = {"describe", "change something else"}
"""Labels of exchanges that read back a change listed in `NEWER`."""


def decoded(dispatcher: Dispatcher, request: bytes, response: bytes) -> Any:
    """Decode a response frame without its length prefix; unordered fields are sorted."""
    key, version = peek_api(request)
    response_type = dispatcher.routes[key].response
    _, start = read_response_header(response, 0, flexible_response_header(response_type, version))
    message: Any = decode(response_type, version, response, start)
    if hasattr(message, "config_resources"):
        message.config_resources.sort(key=lambda row: (row.resource_type, row.resource_name))
    return message


def verdicts(message: Any) -> list[tuple[int, str | None]]:
    """The error code and message of each resource."""
    rows = message.responses if hasattr(message, "responses") else message.results
    return [(row.error_code, row.error_message) for row in rows]


def replay(path: Path) -> list[tuple[Exchange, Any, Any]]:
    """Each exchange with Kafka's answer and ours; None for no answer."""
    dispatcher = Dispatcher(make_broker(), Routes())
    connection = make_connection()
    rows = []
    for exchange in exchanges(path):
        try:
            answer = dispatcher.answer(exchange.request, 0, connection)
        except WireError:
            answer = None
        ours = decoded(dispatcher, exchange.request, answer[4:]) if isinstance(answer, bytes) else None
        theirs = decoded(dispatcher, exchange.request, exchange.response) if exchange.response else None
        rows.append((exchange, theirs, ours))
    return rows


def differs_on_purpose(path: Path, rows: list[tuple[Exchange, Any, Any]], index: int) -> bool:
    """Whether this exchange reads back the result of the `NEWER` exchange just before it."""
    label = rows[index][0].label
    while label in FOLLOWING and index:
        index -= 1
        label = rows[index][0].label
        if (path.stem, label) in NEWER:
            return True
    return False


@pytest.mark.parametrize("path", FILES, ids=golden_id)
def test_the_answer_is_kafkas(path: Path) -> None:
    rows = replay(path)

    for index, (exchange, theirs, ours) in enumerate(rows):
        newer = NEWER.get((path.stem, exchange.label))
        if newer is not None:
            assert ours != theirs, f"{exchange.label}: no longer different"
            code, words = newer
            for found_code, message in verdicts(ours):
                assert found_code == code, exchange.label
                assert (words is None) == (message is None), exchange.label
                assert words is None or words in (message or ""), exchange.label
        elif not differs_on_purpose(path, rows, index):
            assert ours == theirs, exchange.label


def test_every_listed_difference_is_in_a_file() -> None:
    labels = {(path.stem, exchange.label) for path in FILES for exchange in exchanges(path)}

    unknown = NEWER.keys() - labels

    assert unknown == set()


def test_every_api_has_golden_files() -> None:
    requests = [exchange for path in FILES for exchange in exchanges(path)]

    keys = {peek_api(exchange.request)[0] for exchange in requests}

    assert keys >= {32, 33, 44, 74}
    assert len(requests) > 200
