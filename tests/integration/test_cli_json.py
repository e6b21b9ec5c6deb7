"""``--json`` of every command that lists something, against a host."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click
import pytest

from odradek.cli.main import SUBCOMMANDS, cli, run
from odradek.client.admin import AdminClient
from odradek.client.group_offsets import CommittedOffset
from odradek.client.resources import ConfigChange, ConfigResource, NewTopic
from odradek.client.users import new_credential
from odradek.plugin.client_quota import ClientQuotaEntity
from odradek.security.scram import ScramMechanism
from odradek.wire.config_resource import ResourceType
from support.hosts import running_host

TOPIC = {"type": "topic", "name": "orders"}
OFFSETS = {"group": "billing", "topic": "orders", "partition": 0}
SHOWN: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    (("topics", "--list"), {"topic": "orders"}),
    (
        ("topics", "--describe", "--topic", "orders"),
        {"topic": "orders", "internal": False, "configs": {"min.insync.replicas": "1", "retention.ms": "7"}},
    ),
    (("groups", "--list"), {"group": "billing", "type": "Classic", "state": "Empty"}),
    (
        ("groups", "--describe", "--group", "billing"),
        {**OFFSETS, "current_offset": 0, "log_end_offset": 0, "lag": 0, "consumer_id": None},
    ),
    (
        ("groups", "--describe", "--group", "billing", "--state"),
        {"group": "billing", "state": "Empty", "members": 0, "coordinator_id": 1},
    ),
    (
        ("groups", "--reset-offsets", "--dry-run", "--to-latest", "--all-topics", "--group", "billing"),
        {**OFFSETS, "new_offset": 0},
    ),
    (
        ("groups", "--delete-offsets", "--group", "finished", "--topic", "orders"),
        {"topic": "orders", "partition": 0, "status": "Successful"},
    ),
    (
        ("replay", "--plugin", "otlp", "--since", "1h", "--dry-run"),
        {**OFFSETS, "group": "odradek.forwarder.otlp", "new_offset": 0},
    ),
    (("api-versions",), {"broker": 1, "api": "Produce", "key": 0, "first": 0, "last": 13, "usable": 13}),
    (("get-offsets", "--topic", "orders"), {"topic": "orders", "partition": 0, "offset": 0}),
    (("configs", "--describe", "--topic", "orders"), {**TOPIC, "config": "retention.ms", "value": "7"}),
    (("client-metrics", "--list"), {"name": "all"}),
    (
        ("client-metrics", "--describe", "--name", "all"),
        {"name": "all", "configs": {"interval.ms": "1000", "match": "", "metrics": "*"}},
    ),
    (("quotas", "--describe"), {"entity": {"user": "alice"}, "quotas": {"producer_byte_rate": 1024.0}}),
    (("users", "--list"), {"user": "alice"}),
    (("users", "--describe"), {"user": "alice", "mechanism": "SCRAM-SHA-256", "iterations": 4096}),
]


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A host with one of everything."""
    with running_host(tmp_path_factory.mktemp("json") / "data") as host, AdminClient(host.bootstrap) as admin:
        admin.create_topics([NewTopic(name="orders", configs={"retention.ms": "7"})])
        for group in ("billing", "finished", "odradek.forwarder.otlp"):
            admin.offset_commit(group, {("orders", 0): CommittedOffset(0)})
        subscription = ConfigResource(ResourceType.CLIENT_METRICS, "all")
        admin.incremental_alter_configs(
            {subscription: [ConfigChange("metrics", "*"), ConfigChange("interval.ms", "1000")]}
        )
        admin.alter_client_quotas({ClientQuotaEntity.of({"user": "alice"}): {"producer_byte_rate": 1024}})
        credential = new_credential("alice", ScramMechanism.SCRAM_SHA_256, "secret", 4096, b"salt" * 8)
        admin.alter_user_scram_credentials(upsertions=[credential])
        yield host.bootstrap


@pytest.mark.parametrize(("arguments", "expected"), SHOWN, ids=[" ".join(row[0]) for row in SHOWN])
def test_each_line_of_a_listing_is_an_object(
    bootstrap: str, arguments: tuple[str, ...], expected: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    command, *rest = arguments

    status = run([command, "--bootstrap-server", bootstrap, *rest, "--json"])

    assert status == 0
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [found for found in objects if expected.items() <= found.items()] != [], objects


def test_the_apis_of_a_broker_are_shown_as_by_kafkas_tool(
    bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run(["api-versions", "--bootstrap-server", bootstrap])

    first, *apis, last = capsys.readouterr().out.splitlines()
    assert (status, last) == (0, ")")
    assert first == f"{bootstrap} (id: 1 rack: null isFenced: false) -> ("
    assert apis[1] == "\tFetch(1): 4 to 18 [usable: 18],"
    assert "\tListPartitionReassignments(46): 0 [usable: 0]," in apis
    assert "\tDescribeTopicPartitions(75): 0 [usable: 0]," in apis
    assert apis[-1] == "\tStreamsGroupTopologyDescriptionUpdate(93): 0 [usable: 0]"


def test_a_topic_has_its_partitions(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["topics", "--bootstrap-server", bootstrap, "--describe", "--topic", "orders", "--json"])

    assert json.loads(capsys.readouterr().out)["partitions"] == [
        {"partition": 0, "leader": 1, "replicas": [1], "isr": [1], "elr": [], "last_known_elr": []}
    ]


@pytest.mark.parametrize("name", sorted(SUBCOMMANDS))
def test_every_command_that_lists_something_has_the_option(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)

    assert command is not None
    options = {option for parameter in command.params for option in parameter.opts}
    assert "--json" in options or not options & {"--list", "--describe"}


def test_only_listings_are_printed_as_json(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["topics", "--bootstrap-server", bootstrap, "--delete", "--topic", "orders", "--json"])

    assert status == 2
    assert "option --json can't be used with --delete" in capsys.readouterr().err
