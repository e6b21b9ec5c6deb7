"""The console with exactly the rights that it needs, and without one of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError
from odradek.client.group_offsets import CommittedOffset
from odradek.client.sasl import SaslLogin
from odradek_console.reading.cluster_view import ClusterView
from odradek_console.reading.leases import exactly, grant, new_name
from odradek_console.reading.replay import deliver_since
from odradek_console.view import TOPIC, View
from support.limited_users import MECHANISM, PASSWORD, LimitedUsers, limited_users
from support.waiting import wait_until

PATIENCE_S = 60
GROUP = "odradek.forwarder.otlp"
READ = f"READ TOPIC {TOPIC}"
READ_LETTERS = f"READ TOPIC {TOPIC}_dead_letter"
TOPIC_CONFIGS = f"DESCRIBE_CONFIGS TOPIC {TOPIC}"
CONFIGS = "DESCRIBE_CONFIGS CLUSTER kafka-cluster"
GROUPS = "DESCRIBE GROUP odradek.forwarder.*"
LOOK = (READ, READ_LETTERS, TOPIC_CONFIGS, CONFIGS, GROUPS)
ALTER = "ALTER_CONFIGS CLUSTER kafka-cluster"
DELIVER = "READ GROUP odradek.forwarder.*"


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimitedUsers]:
    with limited_users(tmp_path_factory.mktemp("rights") / "data") as limited:
        with AdminClient(limited.serve.bootstrap) as admin:
            admin.offset_commit(GROUP, {(TOPIC, 0): CommittedOffset(0)})
        yield limited


def connector(users: LimitedUsers, *rights: str) -> Callable[[], AdminClient]:
    """Makes clients of a user with these rights and no others."""
    login = SaslLogin(MECHANISM.mechanism_name, users.with_rights(*rights), PASSWORD)
    return partial(AdminClient, users.guarded, login=login)


def shown(connect: Callable[[], AdminClient]) -> set[str]:
    """What a console with such a client can show."""
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


ALL = {"subscriptions", "quotas", "delivery", "dead letters", "brokers", "settings", "clients"}


@pytest.mark.parametrize(
    ("missing", "hidden"),
    [
        ("", set()),
        (READ, {"clients", "delivery"}),
        (READ_LETTERS, {"dead letters"}),
        (TOPIC_CONFIGS, {"settings"}),
        (CONFIGS, {"subscriptions", "quotas", "settings"}),
        (GROUPS, {"delivery"}),
    ],
    ids=["none", "read", "read letters", "topic configs", "configs", "groups"],
)
def test_looking_needs_each_of_five_rights(users: LimitedUsers, missing: str, hidden: set[str]) -> None:
    connect = connector(users, *(right for right in LOOK if right != missing))

    assert ALL - shown(connect) == hidden


def test_subscriptions_need_the_right_to_alter_configs(users: LimitedUsers) -> None:
    name = new_name(int(time.time()) + 60)

    def watch(*rights: str) -> None:
        with connector(users, *LOOK, *rights)() as admin:
            grant(admin, "*", 5_000, exactly("client_id", ["x"]), name)

    with pytest.raises(ClientError, match="CLUSTER_AUTHORIZATION_FAILED"):
        watch()
    watch(ALTER)
    with AdminClient(users.serve.bootstrap) as admin:
        assert name in admin.list_client_metrics()


def test_delivering_again_needs_the_right_to_read_the_group(users: LimitedUsers) -> None:
    def again(*rights: str) -> None:
        with connector(users, *LOOK, *rights)() as admin:
            assert deliver_since(admin, GROUP, 0)

    with pytest.raises(ClientError, match="GROUP_AUTHORIZATION_FAILED"):
        again()
    again(DELIVER)
