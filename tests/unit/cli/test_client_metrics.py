from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

import pytest

from odradek.cli.main import run
from odradek.client import command_config
from odradek.client.errors import ClientError, RequestFailed, UnsupportedVersion
from odradek.client.resources import ConfigChange, ConfigEntry, ConfigResource
from odradek.wire.config_resource import ConfigOperation, ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.uuid_text import parse_uuid

DEFAULTS = {"interval.ms": "300000", "match": "", "metrics": ""}
BOOTSTRAP = ("--bootstrap-server", "h:1")


class FakeAdmin:
    """An `AdminClient` whose cluster is a dictionary."""

    stored: ClassVar[dict[str, dict[str, str]]] = {}
    changes: ClassVar[list[tuple[str, list[ConfigChange]]]] = []
    made_with: ClassVar[list[tuple[str, str, float]]] = []
    failure: ClassVar[ClientError | None] = None

    def __init__(self, bootstrap: str, client_id: str, timeout_s: float, *security: object) -> None:
        self.made_with.append((bootstrap, client_id, timeout_s))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def list_client_metrics(self) -> list[str]:
        if self.failure:
            raise self.failure
        return list(self.stored)

    def describe_configs(
        self, resources: Iterable[ConfigResource]
    ) -> dict[ConfigResource, list[ConfigEntry]]:
        return {resource: self.entries(resource) for resource in resources}

    def entries(self, resource: ConfigResource) -> list[ConfigEntry]:
        assert resource.type == ResourceType.CLIENT_METRICS
        values = DEFAULTS | self.stored.get(resource.name, {})
        return [
            ConfigEntry(name=key, value=value, source=7, type=0, read_only=False, sensitive=False)
            for key, value in values.items()
        ]

    def incremental_alter_configs(
        self, changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, validate_only: bool = False
    ) -> None:
        if self.failure:
            raise self.failure
        self.changes.extend((resource.name, list(rows)) for resource, rows in changes.items())


@pytest.fixture(autouse=True)
def admin(monkeypatch: pytest.MonkeyPatch) -> type[FakeAdmin]:
    monkeypatch.setattr(command_config, "AdminClient", FakeAdmin)
    for name in ("stored", "changes", "made_with"):
        monkeypatch.setattr(FakeAdmin, name, type(getattr(FakeAdmin, name))())
    monkeypatch.setattr(FakeAdmin, "failure", None)
    return FakeAdmin


def tool(*arguments: str) -> int:
    return run(["client-metrics", *BOOTSTRAP, *arguments])


def test_alter_sets_given_values_and_deletes_empty_ones(
    admin: type[FakeAdmin], capsys: pytest.CaptureFixture[str]
) -> None:
    status = tool("--alter", "--name", "sub-1", "--metrics", "a,b", "--interval", "1000", "--match", "")

    assert status == 0
    assert capsys.readouterr().out == "Altered client metrics config for sub-1.\n"
    assert admin.changes == [
        (
            "sub-1",
            [
                ConfigChange("interval.ms", "1000"),
                ConfigChange("metrics", "a,b"),
                ConfigChange("match", None, ConfigOperation.DELETE),
            ],
        )
    ]


def test_alter_keeps_values_that_are_not_given(admin: type[FakeAdmin]) -> None:
    status = tool("--alter", "--name", "sub-1", "--metrics", "*")

    assert status == 0
    assert admin.changes == [("sub-1", [ConfigChange("metrics", "*")])]


def test_an_empty_interval_restores_the_default(admin: type[FakeAdmin]) -> None:
    status = tool("--alter", "--name", "sub-1", "--interval", "")

    assert status == 0
    assert admin.changes == [("sub-1", [ConfigChange("interval.ms", None, ConfigOperation.DELETE)])]


def test_a_generated_name_is_a_random_uuid_of_type_4(
    admin: type[FakeAdmin], capsys: pytest.CaptureFixture[str]
) -> None:
    status = tool("--alter", "--generate-name", "--metrics", "*")

    ((name, _),) = admin.changes
    assert status == 0
    assert parse_uuid(name)[6] >> 4 == 4
    assert not name.startswith("-")
    assert capsys.readouterr().out == f"Altered client metrics config for {name}.\n"


@pytest.mark.parametrize("options", [(), ("--alter", "--name", "debug")])
def test_a_preset_is_printed_before_it_is_set(
    options: tuple[str, ...], admin: type[FakeAdmin], capsys: pytest.CaptureFixture[str]
) -> None:
    status = tool("--preset", "debug", "--match", "client_id=a", *options)

    printed = capsys.readouterr().out.splitlines()
    assert status == 0
    assert printed[0].startswith("Preset debug. For a few clients, for a while")
    assert printed[1:3] == ["  What else do clients measure?", "    org.apache.kafka."]
    assert printed[-2:] == [
        "Subscription debug with these metrics, interval.ms=10000, match=client_id=a",
        "Altered client metrics config for debug.",
    ]
    assert admin.changes == [
        (
            "debug",
            [
                ConfigChange("metrics", "org.apache.kafka.,io.odradek.observed.client."),
                ConfigChange("interval.ms", "10000"),
                ConfigChange("match", "client_id=a"),
            ],
        )
    ]


def test_a_preset_takes_another_name_and_interval(admin: type[FakeAdmin]) -> None:
    statuses = [
        tool("--preset", "all", "--name", "mine", "--interval", "1000"),
        tool("--preset", "all", "--generate-name"),
    ]

    (name, changes), (generated, _) = admin.changes
    assert statuses == [0, 0]
    assert (name, changes[1]) == ("mine", ConfigChange("interval.ms", "1000"))
    assert parse_uuid(generated)


def test_delete_deletes_every_key_the_broker_returns(
    admin: type[FakeAdmin], capsys: pytest.CaptureFixture[str]
) -> None:
    status = tool("--delete", "--name", "sub-1")

    ((name, changes),) = admin.changes
    assert status == 0
    assert name == "sub-1"
    assert {change.key for change in changes} == set(DEFAULTS)
    assert {change.operation for change in changes} == {ConfigOperation.DELETE}
    assert capsys.readouterr().out == "Deleted client metrics config for sub-1.\n"


def test_describe_prints_one_subscription(admin: type[FakeAdmin], capsys: pytest.CaptureFixture[str]) -> None:
    admin.stored["sub-1"] = {"metrics": "a,b"}

    status = tool("--describe", "--name", "sub-1")

    assert status == 0
    assert capsys.readouterr().out == (
        "Client metrics configs for sub-1 are:\n  interval.ms=300000\n  match=\n  metrics=a,b\n"
    )


def test_describe_without_a_name_prints_all(
    admin: type[FakeAdmin], capsys: pytest.CaptureFixture[str]
) -> None:
    admin.stored.update({"one": {}, "two": {}})

    status = tool("--describe")

    assert status == 0
    titles = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert titles == ["Client metrics configs for one are:", "Client metrics configs for two are:"]


def test_describe_says_that_a_name_is_unknown(
    admin: type[FakeAdmin], capsys: pytest.CaptureFixture[str]
) -> None:
    status = tool("--describe", "--name", "never")

    assert status == 0
    assert capsys.readouterr().out == (
        "The client metric resource never doesn't exist and doesn't have dynamic config.\n"
    )


def test_list_prints_names(admin: type[FakeAdmin], capsys: pytest.CaptureFixture[str]) -> None:
    admin.stored.update({"one": {}, "two": {}})

    status = tool("--list")

    assert status == 0
    assert capsys.readouterr().out == "one\ntwo\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "exactly one action"),
        (("--alter", "--list", "--name", "x"), "exactly one action"),
        (("--alter",), "one of --name or --generate-name must be specified with --alter"),
        (("--alter", "--name", "x", "--generate-name"), "one of --name or --generate-name"),
        (("--delete",), "a client metrics resource name must be specified with --delete"),
        (("--delete", "--name", "x", "--metrics", "a"), "option --metrics can't be used with --delete"),
        (("--delete", "--name", "x", "--preset", "all"), "option --preset can't be used with --delete"),
        (("--preset", "all", "--metrics", "a"), "expected either preset or metrics, found both"),
        (("--preset", "most"), "'most' is not one of 'essential'"),
        (("--delete", "--generate-name"), "option --generate-name can't be used with --delete"),
        (("--describe", "--interval", "1"), "option --interval can't be used with --describe"),
        (("--describe", "--match", ""), "option --match can't be used with --describe"),
        (("--list", "--name", "x"), "option --name can't be used with --list"),
        (
            ("--alter", "--name", "x", "--interval", "bbb"),
            "expected a whole number of milliseconds, found 'bbb'",
        ),
        (("--alter", "--name", "x", "--interval", "2147483648"), "expected a whole number of milliseconds"),
        (("--list", "stray"), "unexpected extra argument"),
        (("--list", "--command-config", "/no/such/file"), "'/no/such/file' does not exist"),
    ],
)
def test_a_bad_command_line_is_one_line_and_status_2(
    arguments: tuple[str, ...], message: str, admin: type[FakeAdmin], capsys: pytest.CaptureFixture[str]
) -> None:
    status = tool(*arguments)

    error = capsys.readouterr().err
    assert status == 2
    assert message in error
    assert error.startswith("odradek client-metrics: ")
    assert error.count("\n") == 1
    assert admin.made_with == []


def test_a_bad_bootstrap_list_names_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["client-metrics", "--bootstrap-server", "nonsense", "--list"])

    assert status == 2
    assert capsys.readouterr().err.startswith("odradek: --bootstrap-server: expected host:port")


@pytest.mark.parametrize(
    ("failure", "line"),
    [
        (
            RequestFailed(ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: 10", "sub-1"),
            "sub-1: INVALID_CONFIG: Illegal client matching pattern: 10",
        ),
        (UnsupportedVersion("h:1: the broker does not support X"), "h:1: the broker does not support X"),
    ],
)
def test_a_failed_operation_is_one_line_and_status_1(
    failure: ClientError, line: str, admin: type[FakeAdmin], capsys: pytest.CaptureFixture[str]
) -> None:
    admin.failure = failure

    status = tool("--alter", "--name", "sub-1", "--match", "10")

    streams = capsys.readouterr()
    assert status == 1
    assert streams.err == f"Error while executing client metrics command : {line}\n"
    assert streams.out == ""


def test_the_command_config_is_given_to_the_client(admin: type[FakeAdmin], tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.id=me\nrequest.timeout.ms=1500\n")

    status = tool("--list", "--command-config", str(file))

    assert status == 0
    assert admin.made_with == [("h:1", "me", 1.5)]
