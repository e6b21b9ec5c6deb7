from __future__ import annotations

import pytest

from odradek.cli.main import run
from odradek.cli.quotas import java_double
from odradek.client import command_config
from odradek.plugin.client_quota import ClientQuotaEntity
from odradek.wire.error_code import ErrorCode
from support.fake_admin import FakeAdmin, refused

Capture = pytest.CaptureFixture[str]
RATES = {"producer_byte_rate": 1024.0, "consumer_byte_rate": 2048.0}


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    fake = FakeAdmin(
        quotas={
            ClientQuotaEntity(user="alice"): dict(RATES),
            ClientQuotaEntity(user=None): {"request_percentage": 12.5},
            ClientQuotaEntity(user="alice", client_id="c"): {"controller_mutation_rate": 5},
            ClientQuotaEntity(user="alice", client_id=None): {"controller_mutation_rate": 10_000_000},
            ClientQuotaEntity(ip="1.2.3.4"): {"connection_creation_rate": 3},
        }
    )
    monkeypatch.setattr(command_config, "AdminClient", fake.client)
    return fake


def tool(*arguments: str) -> int:
    return run(["quotas", "--bootstrap-server", "h:1", *arguments])


ALICE = "Quota configs for user-principal 'alice' are consumer_byte_rate=2048.0, producer_byte_rate=1024.0\n"
DEFAULT_USER = "Quota configs for the default user-principal are request_percentage=12.5\n"
BOTH = "Quota configs for user-principal 'alice', client-id 'c' are controller_mutation_rate=5.0\n"
ALICE_DEFAULT = (
    "Quota configs for user-principal 'alice', the default client-id are controller_mutation_rate=1.0E7\n"
)
ADDRESS = "Quota configs for ip '1.2.3.4' are connection_creation_rate=3.0\n"


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ("", DEFAULT_USER + ALICE + BOTH + ALICE_DEFAULT + ADDRESS),
        ("--entity-type users", DEFAULT_USER + ALICE),
        ("--entity-type users --entity-name alice", ALICE),
        ("--user alice", ALICE),
        ("--entity-type users --entity-default", DEFAULT_USER),
        ("--user-defaults", DEFAULT_USER),
        ("--entity-type users --entity-type clients", BOTH + ALICE_DEFAULT),
        ("--entity-type users --entity-name alice --entity-type clients", BOTH + ALICE_DEFAULT),
        ("--entity-type users --entity-name alice --entity-type clients --entity-default", ALICE_DEFAULT),
        ("--entity-type clients --entity-default --entity-type users --entity-name alice", ALICE_DEFAULT),
        ("--user alice --client c", BOTH),
        ("--user alice --client-defaults", ALICE_DEFAULT),
        ("--ip 1.2.3.4", ADDRESS),
        ("--ip-defaults", ""),
        ("--entity-type clients", ""),
    ],
)
def test_describe_prints_a_line_per_entity(
    admin: FakeAdmin, capsys: Capture, options: str, lines: str
) -> None:
    status = tool("--describe", *options.split())

    assert status == 0
    printed = capsys.readouterr()
    assert sorted(printed.out.splitlines()) == sorted(lines.splitlines())
    assert printed.err == ("" if lines else "no quotas\n")


@pytest.mark.parametrize(
    ("options", "entity", "printed"),
    [
        (
            "--entity-type users --entity-name bob",
            ClientQuotaEntity(user="bob"),
            "Completed updating config for user bob.\n",
        ),
        (
            "--entity-type clients --entity-default",
            ClientQuotaEntity(client_id=None),
            "Completed updating default config for clients in the cluster.\n",
        ),
        ("--user bob", ClientQuotaEntity(user="bob"), "Completed updating config for user bob.\n"),
        (
            "--user-defaults --client c",
            ClientQuotaEntity(user=None, client_id="c"),
            "Completed updating default config for users in the cluster.\n",
        ),
        ("--ip 1.2.3.4", ClientQuotaEntity(ip="1.2.3.4"), "Completed updating config for ip 1.2.3.4.\n"),
    ],
)
def test_alter_sets_quotas(
    admin: FakeAdmin, capsys: Capture, options: str, entity: ClientQuotaEntity, printed: str
) -> None:
    status = tool(
        "--alter", *options.split(), "--add-config", "producer_byte_rate=1e6,request_percentage=2.5"
    )

    assert status == 0
    assert admin.done == [{entity: {"producer_byte_rate": 1_000_000, "request_percentage": 2.5}}]
    assert capsys.readouterr().out == printed


def test_alter_removes_quotas(admin: FakeAdmin) -> None:
    status = tool(
        *("--alter", "--user", "alice", "--add-config", "request_percentage=1"),
        *("--delete-config", "producer_byte_rate, consumer_byte_rate"),
    )

    assert status == 0
    assert admin.done == [
        {
            ClientQuotaEntity(user="alice"): {
                "request_percentage": 1,
                "producer_byte_rate": None,
                "consumer_byte_rate": None,
            }
        }
    ]


def test_a_quota_that_is_not_set_cannot_be_removed(admin: FakeAdmin, capsys: Capture) -> None:
    status = tool("--alter", "--user", "alice", "--delete-config", "request_percentage,producer_byte_rate,x")

    assert status == 1
    assert admin.done == []
    assert capsys.readouterr().err == (
        "Error while executing quotas command : Invalid config(s): request_percentage,x "
        "not set for user-principal 'alice'\n"
    )


def test_a_refusal_is_one_line(admin: FakeAdmin, capsys: Capture) -> None:
    admin.failure = refused(ErrorCode.INVALID_REQUEST, "x")

    status = tool("--alter", "--user", "alice", "--add-config", "bad=1")

    assert status == 1
    assert capsys.readouterr().err == "Error while executing quotas command : x: INVALID_REQUEST\n"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--alter --add-config k=1", "one of --entity-type, --user, --client, --ip must be specified"),
        ("--user a", "command must include exactly one action: --describe or --alter"),
        ("--describe --user a --add-config k=1", "option --add-config can't be used with --describe"),
        ("--describe --entity-type topics", "'topics' is not one of 'users', 'clients', 'ips'"),
        ("--describe --entity-name a", "there are more entity names than entity types"),
        ("--describe --user a --user-defaults", "an entity type is given twice: users, users"),
        ("--describe --user a --ip 1.2.3.4", "only users and clients may be specified together"),
        (
            "--describe --entity-type clients --user a",
            "option --entity-type can't be used with --user without a name",
        ),
        (
            "--alter --entity-type users --add-config k=1",
            "--entity-name or --entity-default must be specified with --alter",
        ),
        ("--alter --user a", "one of --add-config, --delete-config must be specified with --alter"),
        ("--alter --user a --add-config k=x", "option --add-config: expected a number for k, found 'x'"),
        ("--alter --user a --add-config k", "expected key=value or key=[value1,value2], found 'k'"),
        ("--alter --user a --add-config k=1 --delete-config k", "'k' cannot be both set and deleted"),
    ],
)
def test_an_invalid_value_is_a_usage_error(
    admin: FakeAdmin, capsys: Capture, options: str, complaint: str
) -> None:
    status = tool(*options.split())

    assert status == 2
    assert complaint in capsys.readouterr().err
    assert admin.done == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (1.0, "1.0"),
        (12.3, "12.3"),
        (9_999_999.0, "9999999.0"),
        (10_000_000.0, "1.0E7"),
        (10_485_760.0, "1.048576E7"),
        (9.223372036854775807e18, "9.223372036854776E18"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (-12_345_678.5, "-1.23456785E7"),
        (1e300, "1.0E300"),
        (float("inf"), "Infinity"),
    ],
)
def test_numbers_are_printed_as_java_does(value: float, text: str) -> None:
    assert java_double(value) == text
