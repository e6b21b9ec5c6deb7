from __future__ import annotations

from odradek.cli.group_report import members_view
from support.fake_admin import group, member


def test_members_for_scripts_have_their_assignments() -> None:
    new = member("m", ("b", 0), ("a", 1), target=[("a", 1)], epoch=4)
    objects, _ = members_view(group("g", "Reconciling", new, epoch=5, assignment_epoch=5), verbose=False)

    assert list(objects) == [
        {
            "group": "g",
            "consumer_id": "m",
            "group_instance_id": None,
            "host": "/127.0.0.1",
            "client_id": "cl-m",
            "current_epoch": 4,
            "current_assignment": [{"topic": "a", "partition": 1}, {"topic": "b", "partition": 0}],
            "target_epoch": 5,
            "target_assignment": [{"topic": "a", "partition": 1}],
            "upgraded": None,
        }
    ]
