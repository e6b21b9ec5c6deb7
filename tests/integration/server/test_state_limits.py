"""A start with more state than the limits allow, and the metrics of the limits."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from odradek.plugin.config import ConfigError
from odradek.programs.host import Host
from support.hosts import running_host

WARNING = "more is stored than a limit allows: all of it is loaded, and additions are refused"


def subscription(name: str, match: str) -> tuple[str, str]:
    return f"subscriptions.{name}.metrics=a", f"subscriptions.{name}.match=client_id={match}"


def exceeded(caplog: pytest.LogCaptureFixture) -> list[tuple[str, int, int]]:
    """Setting, present number and limit of each warning."""
    return [
        (row.__dict__["setting"], row.__dict__["stored"], row.__dict__["most"])
        for row in caplog.records
        if row.getMessage() == WARNING
    ]


def put_subscriptions(host: Host) -> None:
    for name in ("x", "y", "z"):
        host.metadata.put_resource(16, name, {"match": f"client_id={name * 30}"})


def test_stored_subscriptions_beyond_the_limits_are_loaded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    limits = (
        "telemetry.subscriptions.max=2",
        "telemetry.match.max.length=20",
        "telemetry.match.max.steps=50",
    )

    with (
        caplog.at_level(logging.WARNING),
        running_host(tmp_path, *limits, before_start=put_subscriptions) as host,
    ):
        loaded = host.call(lambda: sorted(host.host.telemetry.subscriptions.by_name))
        rows = host.call(lambda: [*host.host.metric_rows()])

    assert loaded == ["x", "y", "z"]
    assert exceeded(caplog)[0] == ("telemetry.subscriptions.max", 3, 2)
    assert [setting for setting, _, _ in exceeded(caplog)] == [
        "telemetry.subscriptions.max",
        "telemetry.match.max.steps",
    ]
    values = {row.name: row.value for row in rows if row.attributes.get("kind") == "subscriptions"}
    assert values == {"odradek.state.count": 3, "odradek.state.limit": 2, "odradek.state.refused": 0}


def test_a_subscription_of_the_file_beyond_a_limit_stops_the_start(tmp_path: Path) -> None:
    wanted = (*subscription("a", "a"), *subscription("b", "b"))

    with (
        pytest.raises(ConfigError, match=r"subscriptions\.b: telemetry\.subscriptions\.max allows 1"),
        running_host(tmp_path, *wanted, "telemetry.subscriptions.max=1"),
    ):
        pass


def test_a_subscription_of_the_file_that_is_stored_does_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = (*subscription("a", "a" * 30), *subscription("b", "b" * 30))
    with running_host(tmp_path, *wanted):
        pass

    with running_host(tmp_path, *wanted, "telemetry.subscriptions.max=1", "telemetry.match.max.length=20"):
        pass

    assert exceeded(caplog)[0] == ("telemetry.subscriptions.max", 2, 1)


def test_a_subscription_that_the_file_no_longer_has_makes_room(tmp_path: Path) -> None:
    with running_host(tmp_path, *subscription("a", "a")):
        pass

    with running_host(tmp_path, *subscription("b", "b"), "telemetry.subscriptions.max=1") as host:
        assert host.call(lambda: list(host.host.telemetry.subscriptions.by_name)) == ["b"]
        assert host.call(lambda: host.host.metadata.resource_names(16)) == ["b"]
