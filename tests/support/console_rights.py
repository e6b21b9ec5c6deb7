"""The rights that the console needs, and what it can show with some of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError
from odradek.client.sasl import SaslLogin
from odradek_console.reading.cluster_view import ClusterView
from odradek_console.view import TOPIC, View
from support.limited_users import MECHANISM, PASSWORD, LimitedUsers
from support.waiting import wait_until

PATIENCE_S: Final = 60
GROUP: Final = "odradek.forwarder.otlp"
READ: Final = f"READ TOPIC {TOPIC}"
READ_LETTERS: Final = f"READ TOPIC {TOPIC}_dead_letter"
TOPIC_CONFIGS: Final = f"DESCRIBE_CONFIGS TOPIC {TOPIC}"
CONFIGS: Final = "DESCRIBE_CONFIGS CLUSTER kafka-cluster"
GROUPS: Final = "DESCRIBE GROUP odradek.forward*"
LOOK: Final = (READ, READ_LETTERS, TOPIC_CONFIGS, CONFIGS, GROUPS)
ALTER: Final = "ALTER_CONFIGS CLUSTER kafka-cluster"
DELIVER: Final = "READ GROUP odradek.forward*"
EVERYTHING: Final = {
    "subscriptions",
    "quotas",
    "delivery",
    "dead letters",
    "brokers",
    "settings",
    "clients",
}


def connector(users: LimitedUsers, user: str) -> Callable[[], AdminClient]:
    """Makes clients of a user."""
    login = SaslLogin(MECHANISM.mechanism_name, user, PASSWORD)
    return partial(AdminClient, users.guarded, login=login)


def shown(connect: Callable[[], AdminClient]) -> set[str]:
    """The parts of `EVERYTHING` that a console with such a client can show."""
    cluster = ClusterView(connect, TOPIC)
    questions: dict[str, Callable[[], object]] = {
        "subscriptions": cluster.subscriptions,
        "quotas": lambda: cluster.quotas() is not None,
        "delivery": cluster.delivery,
        "dead letters": lambda: cluster.dead_letters() is not None,
        "brokers": cluster.brokers,
        "settings": cluster.configs,
        "clients": lambda: is_read(connect),
    }
    return {name for name, ask in questions.items() if is_answered(ask)}


def is_answered(ask: Callable[[], object]) -> bool:
    """Whether a question has an answer, and not an empty one."""
    try:
        return bool(ask())
    except ClientError as error:
        if "AUTHORIZATION_FAILED" not in str(error):
            raise
        return False


def is_read(connect: Callable[[], AdminClient]) -> bool:
    """Whether the telemetry topic can be read."""
    with View(connect) as view:
        progress = view.reader.progress
        wait_until(
            lambda: progress.is_caught_up or "AUTHORIZATION" in progress.problem, view.reading, PATIENCE_S
        )
        return progress.is_caught_up and not progress.problem
