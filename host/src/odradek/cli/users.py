"""``odradek users``: who may connect to SASL listeners, of any broker or, before the first start, of a data
directory.

A password is typed or read from a file; there is no option that takes it, because others can see the command
lines of a machine.
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
from odradek.cli.columns import table
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
from odradek.server.upkeep.data_dir import DataDir
from odradek.server.upkeep.storage import METADATA_FILE
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
}
NAMES = [each.mechanism_name for each in ScramMechanism]
COLUMNS = [("USER", 15), ("MECHANISM", 15), ("ITERATIONS", 10)]


class Users(Protocol):
    """A broker, or a data directory."""

    def describe_user_scram_credentials(
        self, names: Sequence[str] | None = None
    ) -> Mapping[str, Iterations | RequestFailed]: ...

    def alter_user_scram_credentials(
        self,
        deletions: Sequence[ScramCredentialDeletion] = (),
        upsertions: Sequence[ScramCredentialUpsertion] = (),
    ) -> Mapping[str, RequestFailed | None]: ...


class StoredUsers:
    """The users of a host that does not run."""

    def __init__(self, credentials: Credentials) -> None:
        self.credentials = credentials

    def describe_user_scram_credentials(
        self, names: Sequence[str] | None = None
    ) -> Mapping[str, Iterations | RequestFailed]:
        """As a broker tells it."""
        return {name: self.described(name) for name in names or self.credentials.users()}

    def described(self, name: str) -> Iterations | RequestFailed:
        """One user."""
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
        """As a broker does it."""
        outcomes = self.credentials.alter(deletions, upsertions)
        return {name: None if error is None else failed(error, name) for name, error in outcomes.items()}


def failed(error: ApiError, subject: str) -> RequestFailed:
    """A refusal as a client sees it."""
    return RequestFailed(error.code, error.message, subject)


@click.command("users", context_settings={"help_option_names": ["--help"]})
@partial(cluster_options, required=False)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Instead of a broker: the data.dir of a host that does not run; --add makes it.",
)
@click.option("--list", "list_names", is_flag=True, help="List the users.")
@click.option("--describe", is_flag=True, help="Show the mechanisms and iterations of all users.")
@click.option("--add", metavar="NAME", help="Add a user, or give a user a new password.")
@click.option("--delete", metavar="NAME", help="Delete a user, or some mechanisms of a user.")
@click.option(
    "--mechanism",
    "mechanisms",
    type=click.Choice(NAMES),
    multiple=True,
    help="Only this one. May be repeated; by default all.",
)
@click.option(
    "--iterations",
    type=click.IntRange(MIN_ITERATIONS, MAX_ITERATIONS),
    metavar="N",
    help=f"How costly it is to guess; {DEFAULT_ITERATIONS} by default.",
)
@click.option(
    "--password-file",
    type=click.File(encoding="utf-8"),
    metavar="FILE",
    help="Has the password in its first line; - is standard input. By default the password is asked for.",
)
def users(
    bootstrap_server: str | None, command_config: Path | None, data_dir: Path | None, **options: Any
) -> None:
    """List, describe, add and delete the users of SASL listeners.

    Exactly one of --list, --describe, --add and --delete.
    """
    action = one_action(options, ACTIONS)
    only_with(options, action, GOES_WITH)
    if (bootstrap_server is None) == (data_dir is None):
        raise click.UsageError("exactly one of --bootstrap-server and --data-dir must be specified")
    if data_dir is not None and action != "add" and not data_dir.is_dir():
        raise click.UsageError(f"option --data-dir: there is no directory {data_dir}")
    password = read_password(options) if action == "add" else ""
    if data_dir is not None:
        with stored_users(data_dir) as stored:
            carry_out(stored, action, options, password)
    else:
        with connected(FAILING, bootstrap_server or "", command_config) as admin:
            carry_out(admin, action, options, password)


@contextmanager
def stored_users(data_dir: Path) -> Iterator[StoredUsers]:
    """The users in a data directory, which nobody else may use meanwhile.

    Raises:
        ConfigError: A host runs on it, or it cannot be used.
    """
    with closing(DataDir(data_dir, "--data-dir")):
        try:
            metadata = MetadataStore(data_dir / METADATA_FILE)
        except StoreError as error:
            raise ConfigError("--data-dir", str(error)) from error
        with closing(metadata):
            yield StoredUsers(Credentials(metadata))


def read_password(options: Mapping[str, Any]) -> str:
    """The password of a user to add.

    Raises:
        click.UsageError: It is empty.
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
    """Do what the command line says.

    Raises:
        CommandFailed: It was refused.
    """
    chosen = [found for name in options["mechanisms"] if (found := mechanism_named(name)) is not None]
    if action == "add":
        iterations = options["iterations"] or DEFAULT_ITERATIONS
        add(users, options["add"], chosen or list(ScramMechanism), password, iterations)
    elif action == "delete":
        delete(users, options["delete"], chosen)
    else:
        show(described(users), names_only=action == "list_names")


def add(
    users: Users, name: str, mechanisms: Sequence[ScramMechanism], password: str, iterations: int
) -> None:
    """Set credentials: one request for each mechanism, as a broker takes one change per user."""
    for mechanism in mechanisms:
        salt = os.urandom(SALT_BYTES)
        credential = new_credential(name, mechanism, password, iterations, salt)
        check(users.alter_user_scram_credentials(upsertions=[credential]))
    click.echo(f"Set the password of user {name} for {names_of(mechanisms)}.")


def delete(users: Users, name: str, mechanisms: Sequence[int]) -> None:
    """Remove credentials, likewise."""
    had = described(users).get(name)
    if had is None:
        raise CommandFailed(f"{FAILING} there is no user {name}")
    wanted = mechanisms or sorted(had)
    if missing := [mechanism for mechanism in wanted if mechanism not in had]:
        raise CommandFailed(f"{FAILING} user {name} has no {names_of(missing)}")
    for mechanism in wanted:
        check(users.alter_user_scram_credentials([ScramCredentialDeletion(name=name, mechanism=mechanism)]))
    click.echo(f"Deleted {names_of(wanted)} of user {name}.")


def described(users: Users) -> dict[str, Iterations]:
    """What all users have.

    Raises:
        CommandFailed: It was refused.
    """
    found: dict[str, Iterations] = {}
    for user, outcome in users.describe_user_scram_credentials().items():
        if isinstance(outcome, RequestFailed):
            raise CommandFailed(f"{FAILING} {outcome}")
        found[user] = outcome
    return found


def show(found: Mapping[str, Iterations], *, names_only: bool) -> None:
    """Print users, by name."""
    if not found:
        click.echo("no users", err=True)
    if names_only:
        lines = sorted(found)
    else:
        lines = table(
            COLUMNS,
            [
                (user, names_of([mechanism]), iterations)
                for user, mechanisms in sorted(found.items())
                for mechanism, iterations in sorted(mechanisms.items())
            ],
        )
    for line in lines:
        click.echo(line)


def check(outcomes: Mapping[str, RequestFailed | None]) -> None:
    """Let success pass.

    Raises:
        CommandFailed: A change was refused.
    """
    for error in outcomes.values():
        if error is not None:
            raise CommandFailed(f"{FAILING} {error}")


def names_of(mechanisms: Sequence[int]) -> str:
    """Mechanisms for people."""
    known = {int(each): each.mechanism_name for each in ScramMechanism}
    return ", ".join(known.get(number, f"mechanism {number}") for number in mechanisms)
