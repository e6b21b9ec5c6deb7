"""``odradek acls`` without a broker: which ACLs the options mean, and what is printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from odradek.cli import acls as command
from odradek.cli.main import run
from odradek.client.errors import RequestFailed
from odradek.security.acl import Acl, AclFilter
from odradek.wire.error_code import ErrorCode
from support.acls import acl
from support.tools import Done

ALICE = ("--allow-principal", "User:alice")
Acls = Callable[..., Done]


class FakeAdmin:
    """A cluster with some ACLs."""

    def __init__(self, stored: Sequence[Acl]) -> None:
        self.stored = list(stored)
        self.refusal: RequestFailed | None = None

    def describe_acls(self, wanted: AclFilter) -> list[Acl]:
        return [
            each
            for each in self.stored
            if wanted.selects_pattern(each.pattern) and wanted.selects_entry(each.entry)
        ]

    def create_acls(self, wanted: Sequence[Acl]) -> dict[Acl, RequestFailed | None]:
        if self.refusal is None:
            self.stored += wanted
        return dict.fromkeys(wanted, self.refusal)

    def delete_acls(self, filters: Sequence[AclFilter]) -> list[Acl]:
        gone = [each for wanted in filters for each in self.describe_acls(wanted)]
        self.stored = [each for each in self.stored if each not in gone]
        return gone


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    fake = FakeAdmin([])

    @contextmanager
    def connected(*_: Any) -> Iterator[FakeAdmin]:
        yield fake

    monkeypatch.setattr(command, "connected", connected)
    return fake


@pytest.fixture
def acls(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> Acls:
    def call(*arguments: str) -> Done:
        status = run(["acls", "--bootstrap-server", "h:1", *arguments])
        streams = capsys.readouterr()
        return Done(status, streams.out.splitlines(), streams.err.splitlines())

    return call


def stored(*texts: str) -> list[Acl]:
    return sorted(map(acl, texts))


@pytest.mark.parametrize(
    ("arguments", "made"),
    [
        ((*ALICE, "--topic", "t"), ["ALLOW User:alice ALL TOPIC t"]),
        ((*ALICE, "--topic", "*", "--operation", "read"), ["ALLOW User:alice READ TOPIC *"]),
        (
            (
                *ALICE,
                "--topic",
                "t",
                "--topic",
                "u",
                "--operation",
                "DescribeConfigs",
                "--operation",
                "Write",
            ),
            [
                "ALLOW User:alice DESCRIBE_CONFIGS TOPIC t",
                "ALLOW User:alice WRITE TOPIC t",
                "ALLOW User:alice DESCRIBE_CONFIGS TOPIC u",
                "ALLOW User:alice WRITE TOPIC u",
            ],
        ),
        (
            (*ALICE, "--group", "g", "--resource-pattern-type", "PREFIXED", "--cluster"),
            ["ALLOW User:alice ALL GROUP g*", "ALLOW User:alice ALL CLUSTER kafka-cluster"],
        ),
        (
            (
                *(*ALICE, "--allow-principal", "User:bob", "--deny-principal", "User:eve"),
                *("--allow-host", "10.0.0.1", "--deny-host", "1.2.3.4", "--transactional-id", "x"),
            ),
            [
                "ALLOW User:alice ALL TRANSACTIONAL_ID x 10.0.0.1",
                "ALLOW User:bob ALL TRANSACTIONAL_ID x 10.0.0.1",
                "DENY User:eve ALL TRANSACTIONAL_ID x 1.2.3.4",
            ],
        ),
        (
            (*ALICE, "--producer", "--topic", "p", "--transactional-id", "x", "--idempotent"),
            [
                "ALLOW User:alice WRITE TOPIC p",
                "ALLOW User:alice DESCRIBE TOPIC p",
                "ALLOW User:alice CREATE TOPIC p",
                "ALLOW User:alice WRITE TRANSACTIONAL_ID x",
                "ALLOW User:alice DESCRIBE TRANSACTIONAL_ID x",
                "ALLOW User:alice IDEMPOTENT_WRITE CLUSTER kafka-cluster",
            ],
        ),
        (
            (*ALICE, "--producer", "--consumer", "--topic", "c", "--group", "g"),
            [
                "ALLOW User:alice WRITE TOPIC c",
                "ALLOW User:alice DESCRIBE TOPIC c",
                "ALLOW User:alice CREATE TOPIC c",
                "ALLOW User:alice READ TOPIC c",
                "ALLOW User:alice READ GROUP g",
            ],
        ),
        (
            (*ALICE, "--user-principal", "User:bob", "--operation", "CreateTokens"),
            ["ALLOW User:alice CREATE_TOKENS USER User:bob"],
        ),
    ],
)
def test_the_options_mean_the_acls_that_kafkas_tool_adds(
    acls: Acls, admin: FakeAdmin, arguments: Sequence[str], made: Sequence[str]
) -> None:
    done = acls("--add", *arguments)

    assert done.status == 0, done.err
    assert sorted(admin.stored) == stored(*made)


def test_adding_prints_what_is_new_and_what_is_there(acls: Acls, admin: FakeAdmin) -> None:
    admin.stored = stored("ALLOW User:alice READ TOPIC t")

    done = acls("--add", *ALICE, "--topic", "t", "--operation", "Read", "--operation", "Write")

    pattern = "ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)"
    entry = "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)"
    assert done.out == [
        f"Acl (pattern={pattern}, entry={entry}) already exists.",
        f"Adding ACLs for resource `{pattern}`: ",
        " \t(principal=User:alice, host=*, operation=WRITE, permissionType=ALLOW)",
        "",
    ]


def test_a_refusal_of_the_broker_is_one_line(acls: Acls, admin: FakeAdmin) -> None:
    admin.refusal = RequestFailed(ErrorCode.INVALID_REQUEST, "Invalid empty resource name", "t")

    done = acls("--add", *ALICE, "--topic", "t")

    assert done.status == 1
    assert done.err == ["Error while executing ACL command: t: INVALID_REQUEST: Invalid empty resource name"]


MIXED = [
    "ALLOW User:bob READ TOPIC t",
    "ALLOW User:alice WRITE TOPIC t",
    "ALLOW User:alice READ TOPIC te*",
    "ALLOW User:alice READ GROUP t",
]


def listed(*texts: str) -> list[str]:
    """The listing of ACLs that are one to a resource."""
    lines = []
    for each in map(acl, texts):
        lines += [f"Current ACLs for resource `{each.pattern}`:", f"\t{each.entry}", ""]
    return lines


def test_everything_is_listed(acls: Acls, admin: FakeAdmin) -> None:
    admin.stored = stored(*MIXED)

    done = acls("--list")

    both = listed(MIXED[1])[:-1] + listed(MIXED[0])[1:]
    assert done.out == both + listed(MIXED[2], MIXED[3])


def test_the_patterns_that_fit_a_name_are_listed(acls: Acls, admin: FakeAdmin) -> None:
    admin.stored = stored(*MIXED)

    done = acls("--list", "--topic", "test", "--resource-pattern-type", "match")

    assert done.out == listed(MIXED[2])


def test_the_acls_of_principals_are_listed(acls: Acls, admin: FakeAdmin) -> None:
    admin.stored = stored(*MIXED)

    done = acls("--list", "--topic", "t", "--principal", "User:bob", "--principal", "User:eve")

    assert done.out == ["ACLs for principal `User:bob`", *listed(MIXED[0]), "ACLs for principal `User:eve`"]


def test_json_has_one_object_per_acl(acls: Acls, admin: FakeAdmin) -> None:
    admin.stored = stored(MIXED[2])

    done = acls("--list", "--json")

    assert done.out == [
        '{"resourceType": "TOPIC", "resourceName": "te", "patternType": "PREFIXED", '
        '"principal": "User:alice", "host": "*", "operation": "READ", "permissionType": "ALLOW"}'
    ]


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (("--topic", "t"), [MIXED[2], MIXED[3]]),
        (("--topic", "t", *ALICE, "--operation", "Write"), [MIXED[0], MIXED[2], MIXED[3]]),
        (("--topic", "test", "--resource-pattern-type", "match"), [MIXED[0], MIXED[1], MIXED[3]]),
        (("--topic", "t", *ALICE), MIXED),
    ],
)
def test_acls_are_removed(acls: Acls, admin: FakeAdmin, arguments: Sequence[str], left: list[str]) -> None:
    admin.stored = stored(*MIXED)

    done = acls("--remove", *arguments, "--force")

    assert (done.status, done.out) == (0, [])
    assert sorted(admin.stored) == stored(*left)


@pytest.mark.parametrize(
    ("answer", "is_removed"), [("y\n", True), ("Y\n", True), ("n\n", False), ("", False)]
)
def test_a_removal_is_confirmed(
    acls: Acls, admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch, answer: str, is_removed: bool
) -> None:
    admin.stored = stored("ALLOW User:alice READ TOPIC t")
    monkeypatch.setattr("sys.stdin.readline", lambda: answer, raising=False)

    done = acls("--remove", "--topic", "t")

    assert done.out == [
        "Are you sure you want to delete all ACLs for resource filter "
        "`ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)`? (y/n)"
    ]
    assert (admin.stored == []) == is_removed


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--list", "--add"), "exactly one action: --add, --remove or --list"),
        (("--add", "--topic", "t"), "you must specify one of --allow-principal, --deny-principal"),
        (("--add", *ALICE), "you must provide at least one resource"),
        (("--remove",), "you must provide at least one resource"),
        (
            ("--add", "--allow-principal", "bob", "--topic", "t"),
            "expected a string in format principalType:principalName but got bob",
        ),
        (
            ("--add", *ALICE, "--group", "g", "--operation", "Write"),
            "ResourceType GROUP only supports operations [ALL, READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, "
            "ALTER_CONFIGS]",
        ),
        (("--add", *ALICE, "--topic", "t", "--operation", "Nonsense"), "ResourceType TOPIC only supports"),
        (
            ("--add", *ALICE, "--topic", "t", "--producer", "--operation", "Read"),
            "option --operation can't be used with --producer",
        ),
        (
            ("--add", "--deny-principal", "User:x", "--producer", "--topic", "t"),
            "option --deny-principal can't be used with --producer",
        ),
        (("--add", *ALICE, "--consumer", "--topic", "t"), "with --consumer you must specify a --topic and"),
        (("--add", *ALICE, "--producer", "--group", "g"), "with --producer you must specify a --topic"),
        (("--add", *ALICE, "--idempotent", "--topic", "t"), "the --idempotent option is only available if"),
        (
            ("--add", *ALICE, "--topic", "t", "--resource-pattern-type", "match"),
            "a '--resource-pattern-type' value of 'MATCH' is not valid when adding acls",
        ),
        (("--list", *ALICE), "option --allow-principal can't be used with --list"),
        (
            ("--add", *ALICE, "--principal", "User:x", "--topic", "t"),
            "the --principal option is only available if --list is set",
        ),
        (("--add", *ALICE, "--topic", "t", "--json"), "option --json can't be used with --add"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    acls: Acls, admin: FakeAdmin, arguments: Sequence[str], problem: str
) -> None:
    done = acls(*arguments)

    assert done.status == 2
    assert problem in " ".join(done.err)
    assert admin.stored == []
