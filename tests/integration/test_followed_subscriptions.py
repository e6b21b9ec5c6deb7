"""Hosts that follow the CLIENT_METRICS resources of a cluster; the cluster is another host."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from odradek.client.admin import AdminClient
from odradek.client.cluster_watch import ClusterWatch, Observed, read_subscriptions
from odradek.client.command_config import CommandConfig
from odradek.client.errors import RequestFailed
from odradek.client.lease import lease_name
from odradek.client.resources import ConfigChange, ConfigResource
from odradek.wire.config_resource import ResourceType
from odradek.wire.error_code import ErrorCode
from support.hosts import ThreadedHost, running_host, serving
from support.waiting import wait_until

PATIENCE_S = 60.0
FOLLOWS = "telemetry.subscriptions.bootstrap.servers=127.0.0.1:1"
"""Makes a host follow a cluster. What the tests poll is another one."""
INTERVAL_MS = 200


def admin_of(bootstrap: str) -> AdminClient:
    return CommandConfig().admin(bootstrap)


def alter(bootstrap: str, name: str, metrics: str) -> None:
    """Set the metrics of a subscription."""
    with contextlib.closing(admin_of(bootstrap)) as admin:
        resource = ConfigResource(ResourceType.CLIENT_METRICS, name)
        admin.incremental_alter_configs({resource: [ConfigChange("metrics", metrics)]})


def listed(bootstrap: str) -> dict[str, str]:
    """The metrics of each subscription of a host."""
    with contextlib.closing(admin_of(bootstrap)) as admin:
        return {name: each["metrics"] for name, each in read_subscriptions(admin).items()}


@dataclass
class Follower:
    """A host of this process that follows a cluster, with the results of its polls."""

    polls: list[Mapping[str, str]] = field(default_factory=list)
    """The subscriptions in force after each poll."""


@contextlib.contextmanager
def follower(data_dir: Path, cluster: ThreadedHost, *overrides: str) -> Iterator[Follower]:
    found = Follower()
    with running_host(data_dir, FOLLOWS, *overrides) as thread:

        def polled(state: Observed) -> None:
            host = thread.host
            followed = host.pushes.followed
            assert followed is not None
            thread.call(lambda: followed.polled(state))
            by_name = host.telemetry.subscriptions.by_name
            found.polls.append(
                thread.call(lambda: {name: ",".join(each.metrics) for name, each in by_name.items()})
            )

        watch = ClusterWatch(lambda: admin_of(cluster.bootstrap), INTERVAL_MS, polled)
        watch.start()
        try:
            yield found
        finally:
            watch.stop()
            watch.thread.join(PATIENCE_S)


def await_polls(host: Follower, polls: int) -> None:
    wait_until(lambda: len(host.polls) >= polls, lambda: host.polls, PATIENCE_S)


def test_two_hosts_agree_after_a_poll_that_began_after_the_change(tmp_path: Path) -> None:
    """So they disagree for at most the interval and the time of a poll."""
    with (
        running_host(tmp_path / "cluster") as cluster,
        follower(tmp_path / "a", cluster) as one,
        follower(tmp_path / "b", cluster) as two,
    ):
        for metrics in ("a.", "b.", "c."):
            alter(cluster.bootstrap, "all", metrics)
            before = [len(each.polls) for each in (one, two)]
            for each, polls in zip((one, two), before, strict=True):
                # The first may have begun before the change.
                await_polls(each, polls + 2)
                assert each.polls[polls + 1] == {"all": metrics}
        assert one.polls[-1] == two.polls[-1] == {"all": "c."}


def test_the_file_replaces_a_subscription_of_the_same_name(tmp_path: Path) -> None:
    with running_host(tmp_path / "cluster") as cluster:
        alter(cluster.bootstrap, "all", "cluster.")
        alter(cluster.bootstrap, "more", "cluster.")
        with follower(tmp_path / "a", cluster, "subscriptions.all.metrics=file.") as host:
            wait_until(lambda: host.polls, "no poll", PATIENCE_S)

    assert host.polls[0] == {"all": "file.", "more": "cluster."}


def test_a_lease_that_has_ended_is_not_followed(tmp_path: Path) -> None:
    ended = lease_name(1, "killed")
    with running_host(tmp_path / "cluster") as cluster, follower(tmp_path / "a", cluster) as following:
        alter(cluster.bootstrap, ended, "lease.")
        alter(cluster.bootstrap, "all", "cluster.")
        wait_until(lambda: any("all" in each for each in following.polls), "no poll", PATIENCE_S)

    assert not [each for each in following.polls if ended in each]


def test_what_was_set_on_the_host_before_ends(tmp_path: Path) -> None:
    with running_host(tmp_path / "a") as host:
        alter(host.bootstrap, "own", "a.")
    with running_host(tmp_path / "cluster") as cluster:
        alter(cluster.bootstrap, "all", "cluster.")
        with follower(tmp_path / "a", cluster) as following:
            wait_until(lambda: following.polls, "no poll", PATIENCE_S)

    assert following.polls[0] == {"all": "cluster."}


@pytest.mark.ci
def test_serve_follows_refuses_changes_and_remembers(tmp_path: Path) -> None:
    with running_host(tmp_path / "cluster") as cluster:
        address = cluster.bootstrap
        alter(address, "all", "a.")
        settings = (
            *("--set", f"telemetry.subscriptions.bootstrap.servers={address}"),
            *("--set", f"telemetry.subscriptions.interval.ms={INTERVAL_MS}"),
        )
        with serving(tmp_path / "a", *settings) as host:
            assert listed(host.bootstrap) == {"all": "a."}  # from the first connection on
            refused = f"follows the CLIENT_METRICS resources of {address}"
            with pytest.raises(RequestFailed, match=refused) as caught:
                alter(host.bootstrap, "all", "other.")
            assert caught.value.code == ErrorCode.POLICY_VIOLATION
            alter(address, "all", "b.")
            wait_until(lambda: listed(host.bootstrap) == {"all": "b."}, "no change", PATIENCE_S)
    with serving(tmp_path / "a", *settings) as host:
        assert listed(host.bootstrap) == {"all": "b."}  # the cluster is down
