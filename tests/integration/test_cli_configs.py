"""``odradek configs`` against a host, over the network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hosts import ThreadedHost, running_host
from support.tools import Done, Tool, command_line


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    """One host for all tests of this file, which use different names."""
    with running_host(tmp_path_factory.mktemp("configs") / "data") as started:
        yield started


@pytest.fixture
def tool(host: ThreadedHost, capsys: pytest.CaptureFixture[str]) -> Tool:
    return command_line(host.bootstrap, "configs", capsys)


def topic(host: ThreadedHost, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(host.bootstrap, "topics", capsys)("--create", "--topic", name).status == 0


def test_configs_of_a_topic_are_set_and_deleted(
    host: ThreadedHost, tool: Tool, capsys: pytest.CaptureFixture[str]
) -> None:
    topic(host, "kept", capsys)

    altered = tool(
        "--alter", "--topic", "kept", "--add-config", "cleanup.policy=[compact,delete],segment.ms=5"
    )
    described = tool("--describe", "--topic", "kept")
    deleted = tool("--alter", "--topic", "kept", "--delete-config", "cleanup.policy,segment.ms")
    after = tool("--describe", "--entity-type", "topics", "--entity-name", "kept")

    assert altered == deleted == Done(0, ["Completed updating config for topic kept."], [])
    assert described.out == [
        "Dynamic configs for topic kept are:",
        "  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy="
        "compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}",
        "  segment.ms=5 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:segment.ms=5}",
    ]
    assert after.out == ["Dynamic configs for topic kept are:"]


def test_configs_can_come_from_a_file(
    host: ThreadedHost, tool: Tool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic(host, "filed", capsys)
    file = tmp_path / "add.properties"
    file.write_text("# a week\nretention.ms=604800000\n")

    tool("--alter", "--topic", "filed", "--add-config-file", str(file))

    assert "  retention.ms=604800000 " in tool("--describe", "--topic", "filed").out[1]


def test_all_configs_of_a_topic_are_shown(
    host: ThreadedHost, tool: Tool, capsys: pytest.CaptureFixture[str]
) -> None:
    topic(host, "whole", capsys)

    described = tool("--describe", "--topic", "whole", "--all")

    keys = [line.strip().split("=")[0] for line in described.out[1:]]
    assert described.out[0] == "All configs for topic whole are:"
    assert {"cleanup.policy", "retention.ms", "segment.bytes"} <= set(keys)
    assert keys == sorted(keys)


def test_subscriptions_can_be_configured_too(tool: Tool) -> None:
    tool("--alter", "--client-metrics", "sub", "--add-config", "metrics=[a,b],match=[client_id=[a-z]+]")

    described = tool("--describe", "--entity-type", "client-metrics")

    assert described.out[0] == "Dynamic configs for client-metric sub are:"
    assert (
        "  metrics=a,b sensitive=false synonyms={DYNAMIC_CLIENT_METRICS_CONFIG:metrics=a,b}" in described.out
    )
    assert any(line.startswith("  match=client_id=[a-z]+ ") for line in described.out)


def test_the_node_is_described(tool: Tool) -> None:
    described = tool("--describe", "--broker", "1", "--all")

    assert described.out[0] == "All configs for broker 1 are:"
    assert any(line.startswith("  node.id=1 sensitive=false synonyms={") for line in described.out)


def test_a_new_cluster_has_one_config(tool: Tool) -> None:
    described = tool("--describe", "--entity-type", "brokers", "--entity-default")

    assert described.out == [
        "Default configs for brokers in the cluster are:",
        "  min.insync.replicas=1 sensitive=false "
        "synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=1}",
    ]


def test_a_refusal_is_one_line_and_status_1(
    host: ThreadedHost, tool: Tool, capsys: pytest.CaptureFixture[str]
) -> None:
    topic(host, "strict", capsys)

    bad_value = tool("--alter", "--topic", "strict", "--add-config", "retention.ms=abc")
    no_topic = tool("--alter", "--topic", "nope", "--add-config", "retention.ms=1")

    assert (bad_value.status, no_topic.status) == (1, 1)
    assert bad_value.err == [
        "Error while executing config command : strict: INVALID_CONFIG: "
        "Invalid value abc for configuration retention.ms: Not a number of type LONG"
    ]
    assert no_topic.err[0].startswith(
        "Error while executing config command : nope: UNKNOWN_TOPIC_OR_PARTITION"
    )
