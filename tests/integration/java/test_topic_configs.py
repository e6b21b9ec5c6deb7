"""kafka-configs.sh for topics and brokers; the expectations hold for Apache Kafka 4.3.1 too."""

from __future__ import annotations

import pytest

from integration.java.console_tools import ConsoleTools

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
CONFIGS = "kafka-configs"


def of_topic(name: str) -> tuple[str, ...]:
    return ("--entity-type", "topics", "--entity-name", name)


def test_altered_topic_configs_are_described_with_their_synonyms(tools: ConsoleTools) -> None:
    tools.create_topic("altered")

    altered = tools.succeed(
        CONFIGS,
        *of_topic("altered"),
        "--alter",
        "--add-config",
        "retention.ms=5000,cleanup.policy=[compact,delete]",
    )

    assert altered == ["Completed updating config for topic altered."]
    assert tools.succeed(CONFIGS, *of_topic("altered"), "--describe") == [
        "Dynamic configs for topic altered are:",
        "  cleanup.policy=compact,delete sensitive=false synonyms="
        "{DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}",
        "  retention.ms=5000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5000}",
    ]


def test_deleting_a_topic_config_restores_its_default(tools: ConsoleTools) -> None:
    tools.create_topic("reset", 1, "--config", "max.message.bytes=2000000")

    tools.succeed(CONFIGS, *of_topic("reset"), "--alter", "--delete-config", "max.message.bytes")

    lines = tools.succeed(CONFIGS, *of_topic("reset"), "--describe", "--all")
    assert lines[0] == "All configs for topic reset are:"
    assert (
        "  max.message.bytes=1048588 sensitive=false synonyms={DEFAULT_CONFIG:message.max.bytes=1048588}"
        in lines
    )
    assert len(lines) > 25


def test_a_bad_value_is_refused_with_kafkas_message(tools: ConsoleTools) -> None:
    tools.create_topic("bad-value")

    altered = tools.run(CONFIGS, *of_topic("bad-value"), "--alter", "--add-config", "retention.ms=x")

    assert altered.status == 1
    complaint = "Invalid value x for configuration retention.ms: Not a number of type LONG"
    assert f"InvalidConfigurationException: {complaint}" in altered.said


def test_an_unknown_topic_config_is_refused(tools: ConsoleTools) -> None:
    tools.create_topic("unknown-key")

    altered = tools.run(CONFIGS, *of_topic("unknown-key"), "--alter", "--add-config", "no.such.key=1")

    assert altered.status == 1
    assert "InvalidConfigurationException: Unknown topic config name: no.such.key" in altered.said


def test_configs_of_all_topics_are_described(tools: ConsoleTools) -> None:
    tools.create_topic("among-all", 1, "--config", "retention.ms=7000")

    lines = tools.succeed(CONFIGS, "--entity-type", "topics", "--describe")

    at = lines.index("Dynamic configs for topic among-all are:")
    assert (
        lines[at + 1]
        == "  retention.ms=7000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=7000}"
    )


def test_a_broker_shows_all_its_configs(tools: ConsoleTools) -> None:
    lines = tools.succeed(CONFIGS, "--entity-type", "brokers", "--entity-name", "1", "--describe", "--all")

    assert lines[0] == "All configs for broker 1 are:"
    values = dict(line.strip().split(" sensitive=")[0].split("=", 1) for line in lines[1:])
    assert values["auto.create.topics.enable"] == "true"
    assert values["num.partitions"] == "1"
    assert values["message.max.bytes"] == "1048588"


def test_a_brokers_config_is_altered_at_run_time(tools: ConsoleTools) -> None:
    broker = ("--entity-type", "brokers", "--entity-name", "1")

    altered = tools.succeed(CONFIGS, *broker, "--alter", "--add-config", "log.retention.ms=3600000")

    described = tools.succeed(CONFIGS, *broker, "--describe")
    deleted = tools.succeed(CONFIGS, *broker, "--alter", "--delete-config", "log.retention.ms")
    assert altered == deleted == ["Completed updating config for broker 1."]
    value = "log.retention.ms=3600000"
    expected = f"  {value} sensitive=false synonyms={{DYNAMIC_BROKER_CONFIG:{value}"
    assert any(line.startswith(expected) for line in described), described
    assert value not in "".join(tools.succeed(CONFIGS, *broker, "--describe"))


def test_the_default_of_all_brokers_is_altered(tools: ConsoleTools) -> None:
    brokers = ("--entity-type", "brokers", "--entity-default")

    altered = tools.succeed(CONFIGS, *brokers, "--alter", "--add-config", "log.retention.ms=7200000")

    described = tools.succeed(CONFIGS, *brokers, "--describe")
    tools.succeed(CONFIGS, *brokers, "--alter", "--delete-config", "log.retention.ms")
    assert altered == ["Completed updating default config for brokers in the cluster."]
    assert described[0] == "Default configs for brokers in the cluster are:"
    assert (
        "  log.retention.ms=7200000 sensitive=false "
        "synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=7200000}" in described
    )


def test_a_groups_config_is_altered(tools: ConsoleTools) -> None:
    group = ("--entity-type", "groups", "--entity-name", "configured")

    altered = tools.succeed(CONFIGS, *group, "--alter", "--add-config", "consumer.session.timeout.ms=50000")

    assert altered == ["Completed updating config for group configured."]
    assert tools.succeed(CONFIGS, *group, "--describe") == [
        "Dynamic configs for group configured are:",
        "  consumer.session.timeout.ms=50000 sensitive=false "
        "synonyms={DYNAMIC_GROUP_CONFIG:consumer.session.timeout.ms=50000, "
        "DEFAULT_CONFIG:group.consumer.session.timeout.ms=45000}",
    ]
