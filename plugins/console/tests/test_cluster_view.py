"""Answers and failures of a cluster are kept for a while."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError, ConnectFailed, RequestFailed
from odradek.wire.error_code import ErrorCode
from odradek_console.reading.cluster_view import ClusterView


class Cluster:
    """A cluster that is there, or not."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.attempts = 0
        self.is_away = False
        self.view = ClusterView(self.connect, "topic", kept_s=5.0, now_s=lambda: self.now_s)

    def connect(self) -> Any:
        self.attempts += 1
        if self.is_away:
            raise ConnectFailed("away")
        client: AbstractContextManager[str] = nullcontext(f"answer {self.attempts}")
        return client

    def ask(self, name: str, how: Callable[[Any], Any] = lambda admin: admin) -> object:
        asking: Callable[[AdminClient], Any] = how
        return self.view.kept(name, asking)


def test_an_answer_is_kept_until_it_is_old_or_something_changes() -> None:
    cluster = Cluster()

    answers = [cluster.ask("a"), cluster.ask("a"), cluster.ask("b")]
    cluster.now_s += 5.1
    answers.append(cluster.ask("a"))
    cluster.view.forget()
    answers.append(cluster.ask("a"))

    assert answers == ["answer 1", "answer 1", "answer 2", "answer 3", "answer 4"]


def test_nobody_waits_again_for_a_cluster_that_is_away() -> None:
    cluster = Cluster()
    cluster.ask("a")
    cluster.is_away = True

    for name in ("b", "c", "b"):
        with pytest.raises(ConnectFailed, match="away"):
            cluster.ask(name)

    assert cluster.attempts == 2
    assert cluster.ask("a") == "answer 1"
    cluster.is_away = False
    cluster.now_s += 5.1
    assert cluster.ask("b") == "answer 3"


def test_a_refusal_is_of_one_question_only() -> None:
    cluster = Cluster()

    def refuse(admin: object) -> None:
        raise RequestFailed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    for _ in range(2):
        with pytest.raises(ClientError, match="CLUSTER_AUTHORIZATION_FAILED"):
            cluster.ask("a", refuse)

    assert cluster.ask("b") == "answer 2"
