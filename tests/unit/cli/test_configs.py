from __future__ import annotations

from pathlib import Path

import pytest

from odradek.cli.main import run
from odradek.client import command_config
from odradek.client.groups import GroupListing
from odradek.client.resources import ConfigChange, ConfigEntry, ConfigResource, ConfigSynonym
from odradek.wire.config_resource import ConfigOperation, ConfigSource, ResourceType
from odradek.wire.error_code import ErrorCode
from support.fake_admin import FakeAdmin, refused, topic

Capture = pytest.CaptureFixture[str]
ORDERS = ConfigResource(ResourceType.TOPIC, "orders")
BROKER = ConfigResource(ResourceType.BROKER, "1")
BROKERS = ConfigResource(ResourceType.BROKER, "")
SUB = ConfigResource(ResourceType.CLIENT_METRICS, "sub")


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    fake = FakeAdmin(topics={"orders": topic("orders"), "empty": topic("empty")})
    monkeypatch.setattr(command_config, "AdminClient", fake.client)
    return fake


def tool(*arguments: str) -> int:
    return run(["configs", "--bootstrap-server", "h:1", *arguments])


def entry(name: str, value: str | None, source: int, *synonyms: ConfigSynonym) -> ConfigEntry:
    return ConfigEntry(
        name=name,
        value=value,
        source=source,
        type=2,
        read_only=False,
        sensitive=value is None,
        synonyms=synonyms,
    )


def deletion(key: str) -> ConfigChange:
    return ConfigChange(key, None, ConfigOperation.DELETE)


def test_describe_prints_the_same_as_kafka_configs(admin: FakeAdmin, capsys: Capture) -> None:
    own = ConfigSynonym("cleanup.policy", "compact,delete", ConfigSource.TOPIC)
    default = ConfigSynonym("log.cleanup.policy", "delete", ConfigSource.DEFAULT)
    admin.configs[ORDERS] = [
        entry("segment.ms", "7", ConfigSource.DEFAULT),
        entry("retention.ms", "5", ConfigSource.TOPIC, ConfigSynonym("retention.ms", "5", 1)),
        entry("cleanup.policy", "compact,delete", ConfigSource.TOPIC, own, default),
    ]

    status = tool("--describe", "--topic", "orders")

    assert status == 0
    assert capsys.readouterr().out == (
        "Dynamic configs for topic orders are:\n"
        "  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy="
        "compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}\n"
        "  retention.ms=5 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5}\n"
    )


def test_describe_all_prints_every_key(admin: FakeAdmin, capsys: Capture) -> None:
    admin.configs[ORDERS] = [
        entry("b", None, ConfigSource.DEFAULT),
        entry("a", "1", 99, ConfigSynonym("a", None, 99)),
    ]

    status = tool("--describe", "--entity-type", "topics", "--entity-name", "orders", "--all")

    assert status == 0
    assert capsys.readouterr().out == (
        "All configs for topic orders are:\n"
        "  a=1 sensitive=false synonyms={UNKNOWN:a=null}\n"
        "  b=null sensitive=true synonyms={}\n"
    )


def test_describe_without_a_name_prints_all_of_the_type(admin: FakeAdmin, capsys: Capture) -> None:
    status = tool("--describe", "--entity-type", "topics")

    assert status == 0
    assert capsys.readouterr().out == (
        "Dynamic configs for topic empty are:\nDynamic configs for topic orders are:\n"
    )


def brokers(admin: FakeAdmin) -> None:
    admin.configs[BROKER] = [
        entry("a", "1", ConfigSource.DYNAMIC_BROKER),
        entry("b", "2", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        entry("c", "3", ConfigSource.STATIC_BROKER),
    ]
    admin.configs[BROKERS] = [entry("b", "2", ConfigSource.DYNAMIC_DEFAULT_BROKER)]


def test_brokers_are_described_one_by_one_and_together(admin: FakeAdmin, capsys: Capture) -> None:
    brokers(admin)

    status = tool("--describe", "--entity-type", "brokers")

    assert status == 0
    assert capsys.readouterr().out == (
        "Dynamic configs for broker 1 are:\n"
        "  a=1 sensitive=false synonyms={}\n"
        "Default configs for brokers in the cluster are:\n"
        "  b=2 sensitive=false synonyms={}\n"
    )


@pytest.mark.parametrize(
    "arguments", [("--broker-defaults",), ("--entity-type", "brokers", "--entity-default")]
)
def test_the_default_of_all_brokers_is_described(
    admin: FakeAdmin, capsys: Capture, arguments: tuple[str, ...]
) -> None:
    brokers(admin)

    status = tool("--describe", *arguments)

    assert status == 0
    assert capsys.readouterr().out == (
        "Default configs for brokers in the cluster are:\n  b=2 sensitive=false synonyms={}\n"
    )


def test_subscriptions_are_described(admin: FakeAdmin, capsys: Capture) -> None:
    admin.configs[SUB] = [entry("metrics", "a,b", ConfigSource.CLIENT_METRICS)]

    one = tool("--describe", "--client-metrics", "sub")
    first = capsys.readouterr().out
    all_of_them = tool("--describe", "--entity-type", "client-metrics")

    assert (one, all_of_them) == (0, 0)
    assert (
        first
        == capsys.readouterr().out
        == ("Dynamic configs for client-metric sub are:\n  metrics=a,b sensitive=false synonyms={}\n")
    )


def test_groups_with_and_without_configs_are_described(admin: FakeAdmin, capsys: Capture) -> None:
    admin.configs[ConfigResource(ResourceType.GROUP, "g")] = [entry("a", "1", ConfigSource.GROUP)]
    admin.listings = [GroupListing(group_id="b", protocol_type="consumer")]

    status = tool("--describe", "--entity-type", "groups")

    assert status == 0
    assert capsys.readouterr().out == (
        "Dynamic configs for group b are:\n"
        "Dynamic configs for group g are:\n"
        "  a=1 sensitive=false synonyms={}\n"
    )


@pytest.mark.parametrize(
    ("option", "line"),
    [
        ("--topic", "The topic 'nope' doesn't exist and doesn't have dynamic config."),
        ("--client-metrics", "The client-metric 'nope' doesn't exist and doesn't have dynamic config."),
        ("--group", "The group 'nope' doesn't exist and doesn't have dynamic config."),
    ],
)
def test_an_unknown_resource_is_an_error(admin: FakeAdmin, capsys: Capture, option: str, line: str) -> None:
    status = tool("--describe", option, "nope")

    assert (status, capsys.readouterr().out) == (0, f"{line}\n")


@pytest.mark.parametrize(
    ("entity", "resource", "name"),
    [
        (("--topic", "orders"), ORDERS, "config for topic orders"),
        (("--entity-type", "topics", "--entity-name", "orders"), ORDERS, "config for topic orders"),
        (("--broker", "1"), BROKER, "config for broker 1"),
        (("--broker-defaults",), BROKERS, "default config for brokers in the cluster"),
        (("--client-metrics", "sub"), SUB, "config for client-metric sub"),
    ],
)
def test_alter_sets_and_deletes(
    admin: FakeAdmin, capsys: Capture, entity: tuple[str, ...], resource: ConfigResource, name: str
) -> None:
    status = tool("--alter", *entity, "--add-config", "a=[1,2],b=3", "--delete-config", "c,d")

    assert status == 0
    assert capsys.readouterr().out == f"Completed updating {name}.\n"
    assert admin.done == [
        {resource: [ConfigChange("a", "1,2"), ConfigChange("b", "3"), deletion("c"), deletion("d")]}
    ]


def test_alter_only_deletes(admin: FakeAdmin) -> None:
    status = tool("--alter", "--topic", "orders", "--delete-config", "c, d", "--delete-config", "c")

    assert status == 0
    assert admin.done == [{ORDERS: [deletion("c"), deletion("d")]}]


def test_alter_sets_the_values_in_a_file(admin: FakeAdmin, tmp_path: Path) -> None:
    file = tmp_path / "add.properties"
    file.write_text("# policy\ncleanup.policy=compact,delete\nretention.ms: 5\n")

    status = tool("--alter", "--topic", "orders", "--add-config-file", str(file))

    assert status == 0
    assert admin.done == [
        {ORDERS: [ConfigChange("cleanup.policy", "compact,delete"), ConfigChange("retention.ms", "5")]}
    ]


def test_a_refused_change_is_one_line_and_status_1(admin: FakeAdmin, capsys: Capture) -> None:
    admin.failure = refused(ErrorCode.INVALID_CONFIG, "orders")

    status = tool("--alter", "--topic", "orders", "--add-config", "a=b")

    assert status == 1
    assert capsys.readouterr().err == "Error while executing config command : orders: INVALID_CONFIG\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "exactly one action: --describe or --alter"),
        (("--describe", "--alter", "--topic", "t"), "exactly one action"),
        (("--describe",), "one of --entity-type, --topic, --broker, "),
        (("--describe", "--entity-name", "t"), "one of --entity-type, "),
        (("--describe", "--entity-type", "users"), "'users' is not one of 'topics', 'brokers'"),
        (("--describe", "--topic", "t", "--broker", "1"), "--topic can't be used with --broker"),
        (
            ("--describe", "--topic", "t", "--entity-type", "topics"),
            "--topic can't be used with --entity-type",
        ),
        (("--describe", "--topic", "t", "--entity-name", "t"), "--topic can't be used with --entity-name"),
        (("--describe", "--entity-type", "topics", "--entity-default"), "needs --entity-type brokers"),
        (("--describe", "--broker", "x"), "expected a broker id (a whole number) as the name, found 'x'"),
        (("--describe", "--topic", ""), "the name of a topic must not be empty"),
        (("--describe", "--topic", "t", "--add-config", "a=b"), "--add-config can't be used with --describe"),
        (("--describe", "--topic", "t", "--delete-config", "a"), "--delete-config can't be used with"),
        (("--alter", "--topic", "t", "--all", "--add-config", "a=b"), "--all can't be used with --alter"),
        (("--alter", "--entity-type", "topics", "--add-config", "a=b"), "an entity name must be specified"),
        (("--alter", "--topic", "t"), "one of --add-config, --add-config-file, --delete-config must be"),
        (("--alter", "--topic", "t", "--add-config", "nonsense"), "found 'nonsense'"),
        (("--alter", "--topic", "t", "--add-config", ""), "found ''"),
        (
            ("--alter", "--topic", "t", "--add-config", "a=1", "--delete-config", "a"),
            "'a' cannot be both set and deleted",
        ),
        (
            ("--alter", "--topic", "t", "--add-config", "a=1", "--add-config-file", __file__),
            "--add-config can't be used with --add-config-file",
        ),
    ],
)
def test_a_bad_command_line_is_one_line_and_status_2(
    admin: FakeAdmin, capsys: Capture, arguments: tuple[str, ...], message: str
) -> None:
    status = tool(*arguments)

    streams = capsys.readouterr()
    assert status == 2
    assert message in streams.err
    assert streams.err.startswith("odradek configs: ")
    assert (streams.err.count("\n"), streams.out) == (1, "")
    assert admin.done == []
