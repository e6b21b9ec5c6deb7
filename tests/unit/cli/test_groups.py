from __future__ import annotations

from pathlib import Path

import pytest

from odradek.cli.main import run
from odradek.client import command_config
from odradek.client.errors import UnsupportedVersion
from odradek.client.group_offsets import CommittedOffset
from odradek.client.groups import GroupListing
from odradek.wire.error_code import ErrorCode
from support.fake_admin import FakeAdmin, group, member, partition, refused, topic

Capture = pytest.CaptureFixture[str]
FAILING = "Error: Executing consumer group command failed due to "
ORDERS = [("orders", 0), ("orders", 1)]


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    """A topic of two partitions with offsets 10 to 30, and an idle group at offset 12 of the first."""
    fake = FakeAdmin(
        topics={"orders": topic("orders", partition(0), partition(1))},
        groups={"gone": group("gone", "Empty")},
        committed={"gone": {("orders", 0): CommittedOffset(12)}},
        first=dict.fromkeys(ORDERS, 10),
        last=dict.fromkeys(ORDERS, 30),
    )
    monkeypatch.setattr(command_config, "AdminClient", fake.client)
    return fake


def tool(*arguments: str) -> int:
    return run(["groups", "--bootstrap-server", "h:1", *arguments])


def reset(*arguments: str) -> int:
    return tool("--reset-offsets", "--group", "gone", *arguments)


def listed(admin: FakeAdmin) -> None:
    admin.listings = [
        GroupListing(group_id="new", protocol_type="consumer", state="Stable", type="Consumer"),
        GroupListing(group_id="gone", protocol_type="consumer", state="Empty", type="Classic"),
        GroupListing(group_id="workers", protocol_type="connect", state="Stable", type="Classic"),
        GroupListing(group_id="shared", protocol_type="share", state="Stable", type="Share"),
    ]


def test_list_prints_groups_of_consumers(admin: FakeAdmin, capsys: Capture) -> None:
    listed(admin)

    status = tool("--list")

    assert (status, capsys.readouterr().out) == (0, "gone\nnew\n")


def test_list_shows_types_and_states_in_columns(admin: FakeAdmin, capsys: Capture) -> None:
    listed(admin)

    status = tool("--list", "--state", "--type")

    assert status == 0
    assert capsys.readouterr().out == (
        "GROUP                     TYPE                 STATE\n"
        "gone                      Classic              Empty\n"
        "new                       Consumer             Stable\n"
    )


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("--state", "empty"), ["gone"]),
        (("--state", "STABLE, empty"), ["gone", "new"]),
        (("--type", "consumer"), ["new"]),
        (("--type", "share,consumer"), ["new", "shared"]),
        (("--type", "classic", "--state", "stable"), []),
    ],
)
def test_list_accepts_states_and_types_in_any_case(
    admin: FakeAdmin, capsys: Capture, arguments: tuple[str, ...], names: list[str]
) -> None:
    listed(admin)

    status = tool("--list", *arguments)

    assert status == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]] == names


def test_describe_prints_offsets_as_kafka_consumer_groups_does(admin: FakeAdmin, capsys: Capture) -> None:
    small, large = member("m-1", ("orders", 1)), member("m-2", ("orders", 0), ("pay", 0))
    admin.groups["old"] = group("old", "Stable", small, large)
    admin.committed["old"] = {
        ("orders", 0): CommittedOffset(12, 4),
        ("orders", 1): CommittedOffset(30),
        ("left", 3): CommittedOffset(5),
    }

    status = tool("--describe", "--group", "old")

    row = "{:15} {:15} {:10} {:15} {:15} {:15} {:15} {:15} {}".format
    streams = capsys.readouterr()
    assert (status, streams.err) == (0, "")
    assert streams.out.splitlines() == [
        "",
        "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             "
        "CONSUMER-ID     HOST            CLIENT-ID",
        row("old", "orders", "0", "12", "30", "18", "m-2", "/127.0.0.1", "cl-m-2"),
        row("old", "pay", "0", "-", "-", "-", "m-2", "/127.0.0.1", "cl-m-2"),
        row("old", "orders", "1", "30", "30", "0", "m-1", "/127.0.0.1", "cl-m-1"),
        row("old", "left", "3", "5", "-", "-", "-", "-", "-"),
    ]


def test_describe_verbose_shows_leader_epochs(admin: FakeAdmin, capsys: Capture) -> None:
    admin.committed["gone"] = {("orders", 0): CommittedOffset(12, 4), ("orders", 1): CommittedOffset(13)}

    status = tool("--describe", "--group", "gone", "--offsets", "--verbose")

    _, heading, *rows = capsys.readouterr().out.splitlines()
    assert status == 0
    assert heading.split()[3] == "LEADER-EPOCH"
    assert [row.split()[3] for row in rows] == ["4", "-"]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("Empty", "Consumer group 'g' has no active members.\n"),
        ("PreparingRebalance", "Warning: Consumer group 'g' is rebalancing.\n"),
        ("Reconciling", "Warning: Consumer group 'g' is rebalancing.\n"),
        ("Stable", ""),
    ],
)
def test_notes_for_the_reader_are_on_stderr(admin: FakeAdmin, capsys: Capture, state: str, said: str) -> None:
    admin.groups["g"] = group("g", state)

    status = tool("--describe", "--group", "g")

    streams = capsys.readouterr()
    assert (status, streams.out, streams.err) == (0, "", said)


def test_members_are_described_with_their_partition_counts(admin: FakeAdmin, capsys: Capture) -> None:
    admin.groups["g"] = group("g", "Stable", member("a-member-with-a-long-id", *ORDERS, ("pay", 0)))

    status = tool("--describe", "--group", "g", "--members")

    assert status == 0
    assert capsys.readouterr().out == (
        "\n"
        "GROUP           CONSUMER-ID             HOST            CLIENT-ID                  #PARTITIONS\n"
        "g               a-member-with-a-long-id /127.0.0.1      cl-a-member-with-a-long-id 3\n"
    )


def test_members_are_described_verbosely_with_their_assignments(admin: FakeAdmin, capsys: Capture) -> None:
    new = member("m", *ORDERS, target=[*ORDERS, ("pay", 0)], epoch=4)
    admin.groups["g"] = group("g", "Reconciling", new, epoch=5, assignment_epoch=5)

    status = tool("--describe", "--group", "g", "--members", "--verbose")

    _, heading, row = capsys.readouterr().out.splitlines()
    assert status == 0
    assert heading.split()[-4:] == [
        "CURRENT-EPOCH",
        "CURRENT-ASSIGNMENT",
        "TARGET-EPOCH",
        "TARGET-ASSIGNMENT",
    ]
    assert row.split()[-4:] == ["4", "orders:0,1", "5", "orders:0,1;pay:0"]


def test_static_members_and_members_of_two_protocols_get_columns(admin: FakeAdmin, capsys: Capture) -> None:
    static = member("a", ("orders", 0), instance_id="rack-1", upgraded=False)
    dynamic = member("b", ("orders", 1), upgraded=True)
    admin.groups["g"] = group("g", "Stable", static, dynamic)

    status = tool("--describe", "--group", "g", "--members", "--verbose")

    _, heading, first, second = capsys.readouterr().out.splitlines()
    at = heading.index("GROUP-INSTANCE-ID")
    assert status == 0
    assert heading.endswith("UPGRADED")
    assert (first[at : at + 6], second[at : at + 17].strip()) == ("rack-1", "")
    assert (first.split()[-1], second.split()[-1]) == ("false", "true")


def test_the_state_is_described(admin: FakeAdmin, capsys: Capture) -> None:
    admin.groups["g"] = group("g", "Stable", member("m"), assignor="uniform", epoch=5, assignment_epoch=4)

    short = tool("--describe", "--group", "g", "--state")
    plain = capsys.readouterr().out
    long = tool("--describe", "--group", "g", "--state", "--verbose")

    assert (short, long) == (0, 0)
    assert plain == (
        "\n"
        "GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                #MEMBERS\n"
        "g               h:9092  (1)               uniform              Stable               1\n"
    )
    assert capsys.readouterr().out == (
        "\n"
        "GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                GROUP-EPOCH     "
        "TARGET-ASSIGNMENT-EPOCH   #MEMBERS\n"
        "g               h:9092  (1)               uniform              Stable               5               "
        "4                         1\n"
    )


def test_groups_that_cannot_be_described_do_not_hide_the_others(admin: FakeAdmin, capsys: Capture) -> None:
    admin.groups["workers"] = group("workers", "Stable", protocol_type="connect")

    status = tool("--describe", "--group", "nope", "--group", "gone", "--group", "workers")

    streams = capsys.readouterr()
    assert status == 1
    assert "gone            orders          0          12" in streams.out
    assert streams.err.splitlines() == [
        "Consumer group 'gone' has no active members.",
        FAILING + "nope: GROUP_ID_NOT_FOUND; workers: not a consumer group, its protocol type is connect",
    ]


def test_all_groups_selects_consumer_groups(admin: FakeAdmin, capsys: Capture) -> None:
    listed(admin)
    admin.groups["new"] = group("new", "Stable")

    status = tool("--describe", "--all-groups", "--state")

    rows = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line and "STATE" not in line]
    assert status == 0
    assert rows == ["gone", "new"]


def test_groups_are_deleted(admin: FakeAdmin, capsys: Capture) -> None:
    status = tool("--delete", "--group", "b", "--group", "a")

    assert status == 0
    assert capsys.readouterr().out == "Deletion of requested consumer groups ('a', 'b') was successful.\n"


def test_groups_that_cannot_be_deleted_are_listed_after_the_deleted_ones(
    admin: FakeAdmin, capsys: Capture
) -> None:
    admin.refusals["busy"] = refused(ErrorCode.NON_EMPTY_GROUP, "busy")

    status = tool("--delete", "--group", "busy", "--group", "gone")

    streams = capsys.readouterr()
    assert status == 1
    assert streams.out == "These consumer groups were deleted successfully: 'gone'\n"
    assert streams.err == FAILING + "busy: NON_EMPTY_GROUP\n"


def test_offsets_are_deleted_one_by_one(admin: FakeAdmin, capsys: Capture) -> None:
    admin.refusals["orders", 1] = refused(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, "orders-1")

    status = tool("--delete-offsets", "--group", "g", "--topic", "orders", "--topic", "pay:3")

    streams = capsys.readouterr()
    assert status == 1
    assert streams.out.splitlines() == [
        "",
        "TOPIC           PARTITION  STATUS",
        "orders          0          Successful",
        "orders          1          Error: GROUP_SUBSCRIBED_TO_TOPIC",
        "pay             3          Successful",
    ]
    assert streams.err == FAILING + "g: GROUP_SUBSCRIBED_TO_TOPIC\n"


def test_deleted_offsets_are_printed(admin: FakeAdmin, capsys: Capture) -> None:
    status = tool("--delete-offsets", "--group", "g", "--topic", "orders:0")

    assert status == 0
    assert capsys.readouterr().out.startswith("Request succeeded for deleting offsets from group g.\n\nTOPIC")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--to-earliest", "--topic", "orders"), {0: 10, 1: 10}),
        (("--to-latest", "--topic", "orders:1"), {1: 30}),
        (("--to-latest", "--topic", "orders:1,0", "--topic", "orders"), {0: 30, 1: 30}),
        (("--to-offset", "15", "--topic", "orders"), {0: 15, 1: 15}),
        (("--to-offset", "3", "--topic", "orders:0"), {0: 10}),
        (("--to-offset", "300", "--topic", "orders:0"), {0: 30}),
        (("--shift-by", "-1", "--topic", "orders:0"), {0: 11}),
        (("--shift-by", "-100", "--all-topics"), {0: 10}),
        (("--to-current", "--topic", "orders"), {0: 12, 1: 30}),
        (("--to-current", "--all-topics"), {0: 12}),
        (("--to-datetime", "2026-05-17T10:00:00.000", "--topic", "orders"), {0: 20, 1: 30}),
        (("--by-duration", "PT1H", "--topic", "orders"), {0: 20, 1: 30}),
    ],
)
def test_offsets_are_reset_to_the_target(
    admin: FakeAdmin, arguments: tuple[str, ...], expected: dict[int, int]
) -> None:
    admin.at_time[ORDERS[0]] = 20

    status = reset("--execute", *arguments)

    assert status == 0
    assert admin.done == [("gone", {("orders", index): offset for index, offset in expected.items()})]


@pytest.mark.parametrize(
    "target",
    [
        ("--to-datetime", "1969-12-31T23:59:59.999"),
        ("--to-datetime", "1969-12-31T23:59:59.998"),
        ("--by-duration", "P36500D"),
    ],
)
def test_a_time_before_1970_is_never_taken_for_the_earliest_or_latest_offset(
    admin: FakeAdmin, target: tuple[str, str]
) -> None:
    admin.at_time[ORDERS[0]] = 20

    status = reset("--execute", "--topic", "orders:0", *target)

    assert status == 0
    assert admin.done == [("gone", {("orders", 0): 20})]


def test_new_offsets_are_shown_before_they_are_committed(admin: FakeAdmin, capsys: Capture) -> None:
    status = reset("--to-earliest", "--topic", "orders", "--dry-run")

    assert status == 0
    assert admin.done == []
    assert capsys.readouterr().out.splitlines() == [
        "",
        "GROUP           TOPIC           PARTITION  NEW-OFFSET",
        "gone            orders          0          10",
        "gone            orders          1          10",
    ]


def test_without_execute_nothing_is_committed_and_a_note_is_printed(
    admin: FakeAdmin, capsys: Capture
) -> None:
    status = reset("--to-earliest", "--topic", "orders")

    assert (status, admin.done) == (0, [])
    assert "nothing is committed without --execute" in capsys.readouterr().err


def test_offsets_outside_the_log_are_moved_into_it_with_a_note(admin: FakeAdmin, capsys: Capture) -> None:
    status = reset("--to-offset", "300", "--topic", "orders:0", "--dry-run")

    assert status == 0
    assert capsys.readouterr().err == "WARN: orders-0 has no offset 300: using 30\n"


def test_a_new_group_can_be_given_offsets(admin: FakeAdmin) -> None:
    status = tool("--reset-offsets", "--group", "fresh", "--to-latest", "--topic", "orders:0", "--execute")

    assert status == 0
    assert admin.done == [("fresh", {("orders", 0): 30})]


def test_a_group_with_members_is_not_changed(admin: FakeAdmin, capsys: Capture) -> None:
    admin.groups["busy"] = group("busy", "Stable", member("m"))

    status = tool(
        *("--reset-offsets", "--group", "busy", "--group", "gone"),
        *("--to-earliest", "--topic", "orders:0", "--execute"),
    )

    streams = capsys.readouterr()
    assert status == 1
    assert admin.done == [("gone", {("orders", 0): 10})]
    assert "busy" not in streams.out
    assert streams.err == (FAILING + "group 'busy' is Stable: stop its members to reset its offsets\n")


def test_one_failing_plan_commits_nothing(admin: FakeAdmin, capsys: Capture) -> None:
    admin.groups["other"] = group("other", "Empty")

    status = tool(
        *("--reset-offsets", "--group", "gone", "--group", "other"),
        *("--shift-by", "1", "--topic", "orders:0", "--execute"),
    )

    assert (status, admin.done) == (1, [])
    assert "group other has no committed offset for orders-0" in capsys.readouterr().err


@pytest.mark.parametrize("scope", ["orders:7", "nope", "nope:0"])
def test_partitions_that_do_not_exist_have_no_offsets(admin: FakeAdmin, capsys: Capture, scope: str) -> None:
    status = reset("--to-latest", "--topic", scope, "--execute")

    assert (status, admin.done) == (1, [])
    assert "UNKNOWN_TOPIC_OR_PARTITION" in capsys.readouterr().err


@pytest.mark.parametrize("names", [("gone",), ("gone", "other")])
def test_an_export_can_be_read_again(
    admin: FakeAdmin, capsys: Capture, tmp_path: Path, names: tuple[str, ...]
) -> None:
    admin.groups["other"] = group("other", "Empty")
    admin.committed["other"] = {("orders", 1): CommittedOffset(17)}
    groups = [word for name in names for word in ("--group", name)]
    file = tmp_path / "plan.csv"
    tool("--reset-offsets", *groups, "--to-current", "--all-topics", "--dry-run", "--export")
    file.write_text(capsys.readouterr().out)

    status = tool("--reset-offsets", *groups, "--from-file", str(file), "--execute")

    expected = [("gone", {("orders", 0): 12}), ("other", {("orders", 1): 17})]
    assert status == 0
    assert admin.done == expected[: len(names)]


def test_a_group_missing_from_the_file_is_an_error(admin: FakeAdmin, capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    file.write_text("other,orders,0,1\n")

    status = reset("--from-file", str(file), "--execute")

    assert (status, admin.done) == (2, [])
    assert "the file has no line for group gone" in capsys.readouterr().err


def test_the_timeout_option_is_given_to_the_client(admin: FakeAdmin) -> None:
    status = tool("--list", "--timeout", "1500")

    assert status == 0
    assert admin.made_with == [("h:1", "odradek", 1.5)]


def test_a_broker_that_is_too_old_is_one_line_and_status_1(admin: FakeAdmin, capsys: Capture) -> None:
    admin.failure = UnsupportedVersion("h:1: ListGroups needs a version from 5 to 5, has 0 to 2")

    status = tool("--list", "--type", "consumer")

    assert status == 1
    assert capsys.readouterr().err == FAILING + "h:1: ListGroups needs a version from 5 to 5, has 0 to 2\n"


RESET = ("--reset-offsets", "--group", "g")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "exactly one action: --list, --describe, --delete, --reset-offsets or --delete-offsets"),
        (("--list", "--delete"), "exactly one action"),
        (("--describe",), "one of --group or --all-groups must be specified"),
        (("--delete",), "one of --group or --all-groups must be specified"),
        (("--delete", "--group", "g", "--all-groups"), "--group can't be used with --all-groups"),
        (("--delete", "--group", "g", "--topic", "t"), "option --topic can't be used with --delete"),
        (("--list", "--group", "g"), "option --group can't be used with --list"),
        (("--list", "--members"), "option --members can't be used with --list"),
        (("--list", "--state", "bogus"), "option --state: expected one of Assigning, "),
        (("--list", "--type", "other"), "expected one of Classic, Consumer, Share, Streams, found 'other'"),
        (("--describe", "--group", "g", "--members", "--offsets"), "can't be used with --members"),
        (("--describe", "--group", "g", "--state", "stable"), "--state takes no value with --describe"),
        (("--describe", "--group", "g", "--type"), "option --type can't be used with --describe"),
        (("--describe", "--group", "g", "--execute"), "option --execute can't be used with --describe"),
        (("--delete-offsets", "--topic", "t"), "one --group and at least one --topic must be specified"),
        (("--delete-offsets", "--group", "g"), "one --group and at least one --topic must be specified"),
        (("--delete-offsets", "--group", "g", "--topic", "t:x"), "expected topic or topic:0,1, found 't:x'"),
        ((*RESET, "--topic", "t"), "one of --to-earliest, --to-latest, --to-current, "),
        ((*RESET, "--to-latest"), "one of --all-topics or --topic must be specified"),
        ((*RESET, "--to-latest", "--to-earliest", "--all-topics"), "--to-earliest can't be used with"),
        ((*RESET, "--to-latest", "--topic", "t", "--all-topics"), "--all-topics can't be used with --topic"),
        ((*RESET, "--to-latest", "--all-topics", "--dry-run", "--execute"), "--dry-run can't be used with"),
        ((*RESET, "--from-file", __file__, "--topic", "t"), "--topic can't be used with --from-file"),
        ((*RESET, "--from-file", "/no/such/file"), "'/no/such/file' does not exist"),
        ((*RESET, "--to-offset", "-1", "--all-topics"), "--to-offset"),
        ((*RESET, "--to-datetime", "yesterday", "--all-topics"), "option --to-datetime: expected"),
        ((*RESET, "--by-duration", "1h", "--all-topics"), "option --by-duration: expected PnDTnHnMnS"),
        (("--list", "--timeout", "0"), "--timeout"),
    ],
)
def test_a_bad_command_line_is_one_line_and_status_2(
    admin: FakeAdmin, capsys: Capture, arguments: tuple[str, ...], message: str
) -> None:
    status = tool(*arguments)

    streams = capsys.readouterr()
    assert status == 2
    assert message in streams.err
    assert streams.err.startswith("odradek groups: ")
    assert (streams.err.count("\n"), streams.out) == (1, "")
    assert admin.done == []
