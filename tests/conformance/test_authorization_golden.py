"""The host answers callers who lack rights as Apache Kafka with its StandardAuthorizer does."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from odradek.wire.types import Versions
from support.authorization.case import DUMP, NOWHERE, Case, Ids, plain
from support.authorization.cases import CASES
from support.authorization.world import WORLD
from support.broker import BrokerClient, make_broker, make_connection
from support.grants import Grants

GOLDEN = Path(__file__).parent / "authorization_golden.json"


@cache
def golden() -> dict[str, Any]:
    """Kafka's answers, by the name of the case."""
    answers: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))["answers"]
    return answers


def clients(case: Case) -> tuple[BrokerClient, BrokerClient, Grants]:
    """A caller with the rights of the case, and an admin, of one broker."""
    grants = Grants(case.grants)
    broker = make_broker(authorizer=grants)
    admin = BrokerClient(broker, replace(make_connection(), principal="User:ADMIN"))
    return BrokerClient(broker, replace(make_connection(), principal="User:limited")), admin, grants


def sender(client: BrokerClient) -> Callable[..., Any]:
    """`BrokerClient.send` with the arguments of `Connection.send`."""

    def send(request: Any, least_version: int = 0, most_version: int | None = None) -> Any:
        versions: Versions = client.dispatcher.routes[request.API_KEY].versions
        return client.send(request, versions.last if most_version is None else most_version)

    return send


def ids_of(client: BrokerClient) -> Ids:
    return {topic.name: topic.id for topic in client.broker.topics} | {"gone": NOWHERE}


def spoken(answer: Any) -> Any:
    """Kafka's answer with the text of this host where Kafka dumps a Java object."""
    if isinstance(answer, dict):
        return {name: spoken(value) for name, value in answer.items()}
    if isinstance(answer, list):
        return [spoken(each) for each in answer]
    return "Cluster authorization failed." if answer == DUMP else answer


def test_every_case_was_recorded() -> None:
    names = [case.name for case in CASES]

    assert len(set(names)) == len(names)
    assert list(golden()) == names


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_answer_is_kafkas(case: Case) -> None:
    client, admin, _ = clients(case)
    for step in WORLD:
        step(sender(admin))
    ids = ids_of(client)

    answer = client.send(case.ask(ids), case.version)
    while (request := case.again(answer)) is not None:
        answer = client.send(request, case.version)

    assert plain(answer, ids, case) == spoken(golden()[case.name])
