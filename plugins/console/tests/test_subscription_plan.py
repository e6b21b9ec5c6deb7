"""Plans: what differs between a file and a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.plugin import ConfigError
from odradek_console.reading.subscription_plan import Act, plan, read_wanted

STORED = {
    "same": {"metrics": "*"},
    "other": {"metrics": "a.", "interval.ms": "1000"},
    "drifted": {"metrics": "b."},
    "odradek-watch-1700000000-a": {"metrics": "*"},
}
WANTED = {"same": {"metrics": "*"}, "other": {"metrics": "a.,b."}, "new": {"metrics": "c."}}


@pytest.mark.parametrize(("prune", "act"), [(False, Act.KEEP), (True, Act.DELETE)])
def test_a_plan(prune: bool, act: Act) -> None:
    steps = plan(WANTED, STORED, prune=prune)

    assert [(each.act, each.name, each.changed) for each in steps] == [
        (act, "drifted", ["metrics"]),
        (Act.CREATE, "new", ["metrics"]),
        (Act.CHANGE, "other", ["metrics", "interval.ms"]),
    ]


def test_the_file_of_a_host(tmp_path: Path) -> None:
    path = tmp_path / "odradek.toml"
    path.write_text(
        'listeners = ["PLAINTEXT://:9092"]\n[subscriptions.a]\nmetrics = ["x.", "y."]\n"interval.ms" = 5000\n'
        '[subscriptions.b]\nmetrics = "*"\ninterval.ms = 60\nmatch = ["client_id=a.*"]\n'
        '[subscriptions.c]\npreset = "all"\n'
    )

    assert read_wanted(path) == {
        "a": {"metrics": "x.,y.", "interval.ms": "5000"},
        "b": {"metrics": "*", "interval.ms": "60", "match": "client_id=a.*"},
        "c": {"metrics": "*", "interval.ms": "60000"},
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[[",
        "subscriptions = 1",
        "[subscriptions.a]",
        "[subscriptions.a]\nmetric = 1",
        "[subscriptions.a]\nmetrics = true",
        "[subscriptions.a]\nmetrics = [1]",
        '[subscriptions.a]\npreset = "most"',
        '[subscriptions.a]\npreset = "all"\nmetrics = "a."',
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "wanted.toml"
    path.write_text(text)

    with pytest.raises(ConfigError, match=r"wanted\.toml|subscriptions\.a"):
        read_wanted(path)
