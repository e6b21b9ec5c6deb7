"""The console with exactly the rights that it needs, and without one of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError
from odradek.client.group_offsets import CommittedOffset
from odradek_console.reading.leases import exactly, grant, new_name
from odradek_console.reading.replay import deliver_since
from odradek_console.view import TOPIC
from support.console_rights import (
    ALTER,
    CONFIGS,
    DELIVER,
    EVERYTHING,
    GROUP,
    GROUPS,
    LOOK,
    READ,
    READ_LETTERS,
    TOPIC_CONFIGS,
    connector,
    shown,
)
from support.limited_users import LimitedUsers, limited_users

Connect = Callable[[], AdminClient]


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimitedUsers]:
    with limited_users(tmp_path_factory.mktemp("rights") / "data") as limited:
        with AdminClient(limited.serve.bootstrap) as admin:
            admin.offset_commit(GROUP, {(TOPIC, 0): CommittedOffset(0)})
        yield limited


def with_rights(users: LimitedUsers, *rights: str) -> Connect:
    """Makes clients of a user with these rights and no others."""
    return connector(users, users.with_rights(*rights))


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
    connect = with_rights(users, *(right for right in LOOK if right != missing))

    assert EVERYTHING - shown(connect) == hidden


@pytest.mark.ci
def test_subscriptions_need_the_right_to_alter_configs(users: LimitedUsers) -> None:
    name = new_name(int(time.time()) + 60)

    def watch(*rights: str) -> None:
        with with_rights(users, *LOOK, *rights)() as admin:
            grant(admin, "*", 5_000, exactly("client_id", ["x"]), name)

    with pytest.raises(ClientError, match="CLUSTER_AUTHORIZATION_FAILED"):
        watch()
    watch(ALTER)
    with AdminClient(users.serve.bootstrap) as admin:
        assert name in admin.list_client_metrics()


@pytest.mark.ci
def test_delivering_again_needs_the_right_to_read_the_group(users: LimitedUsers) -> None:
    def again(*rights: str) -> None:
        with with_rights(users, *LOOK, *rights)() as admin:
            assert deliver_since(admin, GROUP, 0)

    with pytest.raises(ClientError, match="GROUP_AUTHORIZATION_FAILED"):
        again()
    again(DELIVER)
