"""The rights that totals in a topic need, as the how-to of `odradek forward` lists them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from odradek.client.admin import AdminClient
from odradek.client.changelog import Changelog
from odradek.client.sasl import SaslLogin
from odradek.temporality import StoreFailed
from support.delta_clients import Scene, d
from support.limited_users import PASSWORD, TOPIC, LimitedUsers, limited_users

NAME = "orders.totals"
RIGHTS = (
    f"READ TOPIC {TOPIC}",
    f"READ TOPIC {NAME}",
    f"WRITE TOPIC {NAME}",
    f"CREATE TOPIC {NAME}",
    f"DESCRIBE_CONFIGS TOPIC {NAME}",
    f"WRITE TRANSACTIONAL_ID {NAME}-0",
)
TIMEOUT_S = 30


def added(users: LimitedUsers, rights: tuple[str, ...]) -> list[float]:
    """The totals after a commit by a user with these rights, as the next process reads them."""
    login = SaslLogin("SCRAM-SHA-256", users.with_rights(*rights), PASSWORD)
    admin = AdminClient(users.guarded, timeout_s=TIMEOUT_S, login=login)
    with closing(Changelog(admin, NAME, TOPIC)) as store:
        store.open()
        scene, again = Scene(), Scene()
        store.load(scene.engine, 0)
        scene.push(d(5.0, 0, 60))
        store.commit(scene.engine, 0)
        store.load(again.engine, 0)
        return list(again.totals().values())


@pytest.mark.ci
def test_totals_need_all_of_these_rights(tmp_path: Path) -> None:
    with limited_users(tmp_path / "data") as users:
        assert added(users, RIGHTS) == [5]
        for missing in (RIGHTS[1], RIGHTS[2], RIGHTS[4], RIGHTS[5]):
            with pytest.raises(StoreFailed, match="AUTHORIZATION_FAILED"):
                added(users, tuple(right for right in RIGHTS if right != missing))
