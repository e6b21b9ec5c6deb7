"""kafka-acls.sh and ``odradek acls`` administer a host with an authorizer, and print the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest

from integration.java.console_tools import ConsoleTools
from integration.java.host_process import host_process
from integration.java.jvm import Jvm
from support.tools import Done, command_line

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
ALICE = ("--allow-principal", "User:alice")
TOPIC = "ResourcePattern(resourceType=TOPIC, name={}, patternType=LITERAL)"
READ = "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)"


@pytest.fixture(scope="module")
def tools(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleTools]:
    """The tools of a super user."""
    folder = tmp_path_factory.mktemp("authorized")
    settings = ("authorizer.class.name=StandardAuthorizer", "super.users=User:ANONYMOUS")
    with host_process(folder, *settings) as host:
        yield ConsoleTools(jvm, host.bootstrap)


@pytest.fixture
def ours(tools: ConsoleTools, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Runs ``odradek acls``."""
    return command_line(tools.bootstrap, "acls", capsys)


def test_kafkas_tool_adds_lists_and_removes(tools: ConsoleTools) -> None:
    read = (*ALICE, "--operation", "Read", "--topic", "one")

    added = tools.succeed("kafka-acls", "--add", *read)
    again = tools.succeed("kafka-acls", "--add", *read)
    listed = tools.succeed("kafka-acls", "--list", "--topic", "one")
    tools.succeed("kafka-acls", "--remove", *read, "--force")
    nothing = tools.succeed("kafka-acls", "--list", "--topic", "one")

    pattern = TOPIC.format("one")
    assert added == [f"Adding ACLs for resource `{pattern}`: ", f" \t{READ}", ""]
    assert again == [f"Acl (pattern={pattern}, entry={READ}) already exists."]
    assert listed == [f"Current ACLs for resource `{pattern}`:", f"\t{READ}", ""]
    assert nothing == []


def stripped(lines: Iterable[str]) -> list[str]:
    """The lines of an addition; the tool prints the entries of a set."""
    return sorted(line.strip() for line in lines)


SAME = [
    (*ALICE, "--topic", "{}"),
    (*ALICE, "--operation", "Read", "--operation", "describe", "--topic", "{}", "--group", "{}"),
    (
        *(*ALICE, "--deny-principal", "User:eve", "--allow-host", "10.0.0.1", "--deny-host", "1.2.3.4"),
        *("--topic", "{}", "--resource-pattern-type", "prefixed"),
    ),
    (*ALICE, "--producer", "--topic", "{}", "--transactional-id", "{}"),
    (*ALICE, "--consumer", "--topic", "{}", "--group", "{}"),
]


@pytest.mark.parametrize("number", range(len(SAME)))
def test_both_tools_print_the_same(tools: ConsoleTools, ours: Callable[..., Done], number: int) -> None:
    def arguments(name: str) -> list[str]:
        return [argument.format(name) for argument in SAME[number]]

    theirs_added = tools.succeed("kafka-acls", "--add", *arguments(f"their-{number}"))
    added = ours("--add", *arguments(f"our-{number}"))
    again = ours("--add", *arguments(f"their-{number}"))
    listed = [
        (sorted(tools.succeed("kafka-acls", *listing)), sorted(ours(*listing).out))
        for listing in [
            ("--list",),
            ("--list", "--principal", "User:eve"),
            ("--list", "--topic", f"our-{number}"),
        ]
    ]
    removed = ours("--remove", *arguments(f"their-{number}"), "--force")

    assert stripped(added.out) == stripped(line.replace("their-", "our-") for line in theirs_added)
    assert len(again.out) == sum(line.strip().startswith("(") for line in theirs_added)
    assert all(line.endswith("already exists.") for line in again.out)
    assert all(theirs == printed for theirs, printed in listed)
    assert (removed.status, removed.out) == (0, [])
    assert not any(f"their-{number}" in line for line in tools.succeed("kafka-acls", "--list"))


@pytest.mark.parametrize(
    ("arguments", "theirs", "why"),
    [
        (
            (*ALICE, "--operation", "Read", "--cluster"),
            "ResourceType CLUSTER only supports operations",
            "ResourceType CLUSTER only supports operations",
        ),
        (
            ("--allow-principal", "alice", "--operation", "Read", "--topic", "t"),
            "expected a string in format principalType:principalName but got alice",
            "expected a string in format principalType:principalName but got alice",
        ),
        ((*ALICE, "--operation", "Read", "--topic", ""), "Invalid empty resource name", "empty"),
        (
            (*ALICE, "--operation", "Fly", "--topic", "t"),
            "ResourceType TOPIC only supports operations",
            "ResourceType TOPIC only supports operations",
        ),
        ((*ALICE, "--operation", "Read"), "You must provide at least one resource", "--topic"),
    ],
    ids=["operation-of-another-type", "no-principal-type", "empty-name", "unknown-operation", "no-resource"],
)
def test_both_tools_are_told_what_is_wrong(
    tools: ConsoleTools, ours: Callable[..., Done], arguments: tuple[str, ...], theirs: str, why: str
) -> None:
    before = tools.succeed("kafka-acls", "--list")

    refused = tools.run("kafka-acls", "--add", *arguments)
    ours_refused = ours("--add", *arguments)

    assert theirs in refused.said
    assert ours_refused.status != 0
    assert why in " ".join(ours_refused.err)
    assert tools.succeed("kafka-acls", "--list") == before
