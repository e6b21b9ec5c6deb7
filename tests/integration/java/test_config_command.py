"""kafka-configs.sh for client-metrics against the host; Apache Kafka 4.3.1 meets the same expectations."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from integration.java.host_process import HostProcess
from integration.java.jvm import Jvm
from integration.java.main_server import Finished

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
MAIN = "kafka.admin.ConfigCommand"
PREFIXES = "org.apache.kafka.producer.,org.apache.kafka.consumer."

Configs = Callable[..., Finished]


@pytest.fixture
def configs(jvm: Jvm, host: HostProcess) -> Configs:
    """Runs the tool for one subscription, against the host."""

    def run(name: str, *args: str) -> Finished:
        entity = ("--entity-type", "client-metrics", "--entity-name", name)
        return jvm.run(MAIN, "--bootstrap-server", host.bootstrap, *entity, *args)

    return run


def test_added_values_are_described(configs: Configs) -> None:
    wanted = f"interval.ms=6000,metrics=[{PREFIXES}],match=[client_id=a.*]"
    added = configs("added", "--alter", "--add-config", wanted)

    described = configs("added", "--describe")

    assert added.status == 0, added.said
    assert added.out == "Completed updating config for client-metric added.\n"
    lines = described.out.splitlines()
    assert lines[0] == "Dynamic configs for client-metric added are:"
    synonyms = f"synonyms={{DYNAMIC_CLIENT_METRICS_CONFIG:metrics={PREFIXES}}}"
    assert f"  metrics={PREFIXES} sensitive=false {synonyms}" in lines
    assert [line.split("=")[0].strip() for line in lines[1:]] == ["interval.ms", "match", "metrics"]


def test_metrics_may_be_empty(configs: Configs) -> None:
    added = configs("empty-list", "--alter", "--add-config", "metrics=,interval.ms=6000")

    assert added.status == 0, added.said
    assert "  metrics= sensitive=false" in configs("empty-list", "--describe").out


def test_deleted_values_are_gone(configs: Configs) -> None:
    added = configs("emptied", "--alter", "--add-config", "metrics=*,interval.ms=6000,match=[client_id=x]")

    deleted = configs("emptied", "--alter", "--delete-config", "metrics,interval.ms")

    assert added.status == 0, added.said
    assert deleted.status == 0, deleted.said
    lines = configs("emptied", "--describe").out.splitlines()
    assert [line.split("=")[0].strip() for line in lines[1:]] == ["match"]


def test_an_unknown_key_fails(configs: Configs) -> None:
    added = configs("unknown-key", "--alter", "--add-config", "unknown.config=1")

    assert added.status == 1
    assert "InvalidRequestException: Unknown client metrics configuration: unknown.config" in added.said


def test_an_interval_that_is_not_a_number_fails(configs: Configs) -> None:
    added = configs("not-a-number", "--alter", "--add-config", "interval.ms=bbb")

    assert added.status == 1
    complaint = "Invalid value bbb for configuration interval.ms: Not a number of type INT"
    assert f"InvalidConfigurationException: {complaint}" in added.said


def test_describe_without_a_name_describes_all(jvm: Jvm, host: HostProcess, configs: Configs) -> None:
    configs("everyone-1", "--alter", "--add-config", "interval.ms=1000")
    configs("everyone-2", "--alter", "--add-config", "interval.ms=2000")

    described = jvm.run(
        MAIN, "--bootstrap-server", host.bootstrap, "--entity-type", "client-metrics", "--describe"
    )

    assert described.status == 0, described.said
    assert "Dynamic configs for client-metric everyone-1 are:\n  interval.ms=1000 " in described.out
    assert "Dynamic configs for client-metric everyone-2 are:\n  interval.ms=2000 " in described.out
