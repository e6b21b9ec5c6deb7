"""``odradek users``: the users of SASL listeners, in any broker or in the data directory of a stopped host.

A password is typed or read from a file. No option takes it, because other users of the machine can see
command lines.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import click

from odradek.broker.credentials import Credentials
from odradek.cli import listing
from odradek.cli.columns import Table
from odradek.cli.connect import cluster_options, connected
from odradek.cli.errors import CommandFailed
from odradek.cli.usage import one_action, only_with
from odradek.client.errors import RequestFailed
from odradek.client.users import Iterations, new_credential
from odradek.metadata.store import MetadataStore, StoreError
from odradek.plugin.config import ConfigError
from odradek.security.scram import (
    DEFAULT_ITERATIONS,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramMechanism,
    mechanism_named,
)
from odradek.security.scram_credential import SALT_BYTES
from odradek.upkeep.data_dir import DataDir
from odradek.upkeep.storage import METADATA_FILE
from odradek.wire.api_error import ApiError
from odradek.wire.messages.alter_user_scram_credentials import (
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

FAILING = "Error while executing users command :"
ACTIONS = ("list_names", "describe", "add", "delete")
GOES_WITH = {
    "mechanisms": ("add", "delete"),
    "iterations": ("add",),
    "password_file": ("add",),
    "as_json": ("list_names", "describe"),
}
NAMES = [each.mechanism_name for each in ScramMechanism]
COLUMNS = [("USER", 15), ("MECHANISM", 15), ("ITERATIONS", 10)]


class Users(Protocol):
    """The store of users: a broker or a data directory."""

    def describe_user_scram_credentials(
        self, names: Sequence[str] | None = None
    ) -> Mapping[str, Iterations | RequestFailed]: ...

    def alter_user_scram_credentials(
        self,
        deletions: Sequence[ScramCredentialDeletion] = (),
        upsertions: Sequence[ScramCredentialUpsertion] = (),
    ) -> Mapping[str, RequestFailed | None]: ...


class StoredUsers:
    """The users in the data directory of a host that is not running."""

    def __init__(self, credentials: Credentials) -> None:
        self.credentials = credentials

    def describe_user_scram_credentials(
        self, names: Sequence[str] | None = None
    ) -> Mapping[str, Iterations | RequestFailed]:
        """Describe users as a broker does."""
        return {name: self.described(name) for name in names or self.credentials.users()}

    def described(self, name: str) -> Iterations | RequestFailed:
        """The mechanisms and iterations of one user, or the refusal."""
        try:
            found = self.credentials.of_user(name)
        except ApiError as error:
            return failed(error, name)
        return {mechanism: credential.iterations for mechanism, credential in found.items()}

    def alter_user_scram_credentials(
        self,
        deletions: Sequence[ScramCredentialDeletion] = (),
        upsertions: Sequence[ScramCredentialUpsertion] = (),
    ) -> Mapping[str, RequestFailed | None]:
        """Change users as a broker does."""
        outcomes = self.credentials.alter(deletions, upsertions)
        return {name: None if error is None else failed(error, name) for name, error in outcomes.items()}


def failed(error: ApiError, subject: str) -> RequestFailed:
    """A refusal in the form that a client returns."""
    return RequestFailed(error.code, error.message, subject)


@click.command("users")
@partial(cluster_options, required=False)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Use the data.dir of a stopped host instead of a broker; --add creates it.",
)
@click.option("--list", "list_names", is_flag=True, help="List the users.")
@click.option("--describe", is_flag=True, help="Show the mechanisms and iterations of all users.")
@click.option("--add", metavar="NAME", help="Add a user, or change the password of a user.")
@click.option("--delete", metavar="NAME", help="Delete a user, or some mechanisms of a user.")
@click.option(
    "--mechanism",
    "mechanisms",
    type=click.Choice(NAMES),
    multiple=True,
    help="Only this mechanism; may be repeated; all by default.",
)
@click.option(
    "--iterations",
    type=click.IntRange(MIN_ITERATIONS, MAX_ITERATIONS),
    metavar="N",
    help=f"Hash iterations, more of which make guessing harder; {DEFAULT_ITERATIONS} by default.",
)
@click.option(
    "--password-file",
    type=click.File(encoding="utf-8"),
    metavar="FILE",
    help="Read the password from the first line of FILE, - for standard input; prompt for it by default.",
)
@listing.json_option
def users(
    bootstrap_server: str | None, command_config: Path | None, data_dir: Path | None, **options: Any
) -> None:
    """List, describe, add and delete the users of SASL listeners.

    Give exactly one of --list, --describe, --add and --delete.
    """
    action = one_action(options, ACTIONS)
    only_with(options, action, GOES_WITH)
    if (bootstrap_server is None) == (data_dir is None):
        raise click.UsageError("exactly one of --bootstrap-server and --data-dir must be specified")
    if data_dir is not None and action != "add" and not data_dir.is_dir():
        raise click.UsageError(f"option --data-dir: directory {data_dir} does not exist")
    password = read_password(options) if action == "add" else ""
    if data_dir is not None:
        with stored_users(data_dir) as stored:
            carry_out(stored, action, options, password)
    else:
        with connected(FAILING, bootstrap_server or "", command_config) as admin:
            carry_out(admin, action, options, password)


@contextmanager
def stored_users(data_dir: Path) -> Iterator[StoredUsers]:
    """Open the users in a data directory, which stays locked meanwhile.

    Raises:
        ConfigError: A host is running in the directory, or the directory is not usable.
    """
    with closing(DataDir(data_dir, "--data-dir")):
        try:
            metadata = MetadataStore(data_dir / METADATA_FILE)
        except StoreError as error:
            raise ConfigError("--data-dir", str(error)) from error
        with closing(metadata):
            yield StoredUsers(Credentials(metadata))


def read_password(options: Mapping[str, Any]) -> str:
    """Read or prompt for the password of the user to add.

    Raises:
        click.UsageError: The first line of the file is empty.
    """
    file = options["password_file"]
    if file is None:
        password: str = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        return password
    first_line: str = file.readline().rstrip("\r\n")
    if not first_line:
        raise click.UsageError(f"{file.name} has no password in its first line")
    return first_line


def carry_out(users: Users, action: str, options: Mapping[str, Any], password: str) -> None:
    """Carry out the action of the command line.

    Raises:
        CommandFailed: The broker refused it.
    """
    chosen = [found for name in options["mechanisms"] if (found := mechanism_named(name)) is not None]
    if action == "add":
        iterations = options["iterations"] or DEFAULT_ITERATIONS
        add(users, options["add"], chosen or list(ScramMechanism), password, iterations)
    elif action == "delete":
        delete(users, options["delete"], chosen)
    else:
        show(described(users), names_only=action == "list_names", as_json=options["as_json"])


def add(
    users: Users, name: str, mechanisms: Sequence[ScramMechanism], password: str, iterations: int
) -> None:
    """Set credentials, with one request per mechanism: a request may change a user only once."""
    for mechanism in mechanisms:
        salt = os.urandom(SALT_BYTES)
        credential = new_credential(name, mechanism, password, iterations, salt)
        check(users.alter_user_scram_credentials(upsertions=[credential]))
    click.echo(f"Set the password of user {name} for {names_of(mechanisms)}.")


def delete(users: Users, name: str, mechanisms: Sequence[int]) -> None:
    """Remove credentials, with one request per mechanism."""
    had = described(users).get(name)
    if had is None:
        raise CommandFailed(f"{FAILING} user {name} does not exist")
    wanted = mechanisms or sorted(had)
    if missing := [mechanism for mechanism in wanted if mechanism not in had]:
        raise CommandFailed(f"{FAILING} user {name} has no {names_of(missing)}")
    for mechanism in wanted:
        check(users.alter_user_scram_credentials([ScramCredentialDeletion(name=name, mechanism=mechanism)]))
    click.echo(f"Deleted {names_of(wanted)} of user {name}.")


def described(users: Users) -> dict[str, Iterations]:
    """The mechanisms and iterations of all users.

    Raises:
        CommandFailed: The broker refused to describe one.
    """
    found: dict[str, Iterations] = {}
    for user, outcome in users.describe_user_scram_credentials().items():
        if isinstance(outcome, RequestFailed):
            raise CommandFailed(f"{FAILING} {outcome}")
        found[user] = outcome
    return found


def show(found: Mapping[str, Iterations], *, names_only: bool, as_json: bool) -> None:
    """Print users in the order of their names."""
    if not found:
        click.echo("no users", err=True)
    if names_only:
        listing.show(as_json, ({"user": user} for user in sorted(found)), sorted(found))
        return
    rows = [
        (user, names_of([mechanism]), iterations)
        for user, mechanisms in sorted(found.items())
        for mechanism, iterations in sorted(mechanisms.items())
    ]
    shown = Table(COLUMNS, rows)
    listing.show(as_json, shown.objects(), shown.lines())


def check(outcomes: Mapping[str, RequestFailed | None]) -> None:
    """Check that no change was refused.

    Raises:
        CommandFailed: A change was refused.
    """
    for error in outcomes.values():
        if error is not None:
            raise CommandFailed(f"{FAILING} {error}")


def names_of(mechanisms: Sequence[int]) -> str:
    """The names of the mechanisms, separated by commas."""
    known = {int(each): each.mechanism_name for each in ScramMechanism}
    return ", ".join(known.get(number, f"mechanism {number}") for number in mechanisms)
