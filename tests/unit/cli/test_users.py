"""``odradek users`` on a data directory; with a broker only the connection differs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from odradek.broker.credentials import Credentials
from odradek.cli.main import cli, run
from odradek.metadata.store import MetadataStore
from odradek.security.scram import ScramMechanism
from odradek.security.scram_credential import is_password
from odradek.upkeep.data_dir import DataDir
from support.tools import Done

Users = Callable[..., Done]
SHA_256, SHA_512 = ScramMechanism


@pytest.fixture
def users(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Users:
    """Runs the command on one directory."""

    def command(*arguments: str) -> Done:
        status = run(["users", "--data-dir", str(tmp_path), *arguments])
        streams = capsys.readouterr()
        return Done(status, streams.out.splitlines(), streams.err.splitlines())

    return command


def password_file(folder: Path, text: str = "secret\n") -> str:
    file = folder / "password"
    file.write_text(text)
    return str(file)


def is_accepted(folder: Path, user: str, mechanism: ScramMechanism, password: str) -> bool:
    metadata = MetadataStore(folder / "metadata.db")
    try:
        found = Credentials(metadata).credential(mechanism, user)
    finally:
        metadata.close()
    return found is not None and is_password(mechanism, found, password)


def test_a_user_is_added_for_all_mechanisms(users: Users, tmp_path: Path) -> None:
    added = users("--add", "alice", "--password-file", password_file(tmp_path, "secret\r\nnot this\n"))
    described = users("--describe")

    assert added == Done(0, ["Set the password of user alice for SCRAM-SHA-256, SCRAM-SHA-512."], [])
    assert described.out == [
        "USER            MECHANISM       ITERATIONS",
        "alice           SCRAM-SHA-256   4096",
        "alice           SCRAM-SHA-512   4096",
    ]
    assert all(is_accepted(tmp_path, "alice", each, "secret") for each in ScramMechanism)


def test_a_user_is_added_for_one_mechanism_with_other_iterations(users: Users, tmp_path: Path) -> None:
    file = password_file(tmp_path)

    users("--add", "bob", "--mechanism", "SCRAM-SHA-512", "--iterations", "16384", "--password-file", file)

    assert [line.split() for line in users("--describe").out[1:]] == [["bob", "SCRAM-SHA-512", "16384"]]


def test_a_new_password_replaces_the_old_one(users: Users, tmp_path: Path) -> None:
    users("--add", "alice", "--password-file", password_file(tmp_path, "old"))

    users("--add", "alice", "--password-file", password_file(tmp_path, "new"))

    assert is_accepted(tmp_path, "alice", SHA_256, "new")
    assert not is_accepted(tmp_path, "alice", SHA_256, "old")


def test_the_same_password_gets_a_new_salt(users: Users, tmp_path: Path) -> None:
    for name in ("alice", "bob"):
        users("--add", name, "--password-file", password_file(tmp_path))

    metadata = MetadataStore(tmp_path / "metadata.db")
    found = Credentials(metadata).by_user
    metadata.close()

    assert len({made.salt for of_user in found.values() for made in of_user.values()}) == 4


def test_users_are_listed_by_name(users: Users, tmp_path: Path) -> None:
    for name in ("bob", "alice"):
        users("--add", name, "--password-file", password_file(tmp_path))

    listed = users("--list")

    assert listed == Done(0, ["alice", "bob"], [])


def test_without_users_the_list_is_empty(users: Users) -> None:
    listed = users("--list")

    assert listed == Done(0, [], ["no users"])


def test_a_user_is_deleted_with_all_its_mechanisms(users: Users, tmp_path: Path) -> None:
    users("--add", "alice", "--password-file", password_file(tmp_path))

    some = users("--delete", "alice", "--mechanism", "SCRAM-SHA-256")
    rest = users("--delete", "alice")

    assert some.out == ["Deleted SCRAM-SHA-256 of user alice."]
    assert rest.out == ["Deleted SCRAM-SHA-512 of user alice."]
    assert users("--list").out == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--delete", "nobody"), "user nobody does not exist"),
        (("--delete", "nobody", "--mechanism", "SCRAM-SHA-256"), "user nobody does not exist"),
        (("--add", ""), "UNACCEPTABLE_CREDENTIAL: Username must not be empty"),
    ],
)
def test_a_refusal_is_one_line_and_status_1(
    users: Users, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    file = ("--password-file", password_file(tmp_path)) if arguments[0] == "--add" else ()

    done = users(*arguments, *file)

    assert done.status == 1
    (line,) = done.err
    assert line.startswith("Error while executing users command :")
    assert said in line


def test_a_missing_mechanism_cannot_be_deleted(users: Users, tmp_path: Path) -> None:
    file = password_file(tmp_path)
    users("--add", "bob", "--mechanism", "SCRAM-SHA-512", "--password-file", file)

    done = users("--delete", "bob", "--mechanism", "SCRAM-SHA-256")

    assert done.status == 1
    assert done.err == ["Error while executing users command : user bob has no SCRAM-SHA-256"]


def test_the_first_user_creates_the_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["users", "--data-dir", str(tmp_path / "new")]

    before = run([*command, "--list"])
    complaint = capsys.readouterr().err
    added = run([*command, "--add", "alice", "--password-file", password_file(tmp_path)])
    listed = run([*command, "--list"])

    assert before == 2
    assert f"directory {tmp_path / 'new'} does not exist" in complaint
    assert (added, listed) == (0, 0)
    assert capsys.readouterr().out.splitlines()[-1] == "alice"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "command must include exactly one action: --list, --describe, --add or --delete"),
        (("--list", "--describe"), "command must include exactly one action"),
        (("--list", "--mechanism", "SCRAM-SHA-256"), "option --mechanism can't be used with --list"),
        (("--delete", "x", "--iterations", "4096"), "option --iterations can't be used with --delete"),
        (("--list", "--bootstrap-server", "h:1"), "exactly one of --bootstrap-server and --data-dir"),
        (("--add", "x", "--iterations", "4095"), "4095"),
        (("--add", "x", "--mechanism", "PLAIN"), "PLAIN"),
        (("--add", "x", "--password-file", "/dev/null"), "/dev/null has no password in its first line"),
    ],
)
def test_a_bad_command_line_is_one_line_and_status_2(
    users: Users, arguments: tuple[str, ...], said: str
) -> None:
    done = users(*arguments)

    assert done.status == 2
    (line,) = done.err
    assert said in line


def test_a_command_without_broker_and_directory_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["users", "--list"])

    assert status == 2
    assert "exactly one of --bootstrap-server and --data-dir" in capsys.readouterr().err


def test_a_directory_in_use_by_a_host_is_not_changed(users: Users, tmp_path: Path) -> None:
    running = DataDir(tmp_path)

    done = users("--list")
    running.close()

    assert done.status == 2
    assert done.err == [
        f"odradek: --data-dir: {tmp_path} is in use by another process; stop it or choose another directory"
    ]


def test_a_password_is_prompted_for_twice_and_not_echoed(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        cli, ["users", "--data-dir", str(tmp_path), "--add", "alice"], input="typed\nother\ntyped\ntyped\n"
    )

    assert result.exit_code == 0
    assert result.output.count("Password:") == 2
    assert "typed" not in result.output
    assert is_accepted(tmp_path, "alice", SHA_512, "typed")


def test_the_credentials_file_is_readable_by_its_owner_only(users: Users, tmp_path: Path) -> None:
    users("--add", "alice", "--password-file", password_file(tmp_path))

    assert (tmp_path / "metadata.db").stat().st_mode & 0o077 == 0
