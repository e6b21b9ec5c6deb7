"""The command ``odradek``: finds subcommands and turns errors into one line on stderr and an exit status.

Exit status: 0 success, 1 the operation failed, 2 the command line or the configuration is invalid, 130
interrupted.

A subcommand is imported only when it is called, so that ``odradek --help`` does not import protobuf or grpc.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

import click
from click.shell_completion import CompletionItem

from odradek import __version__
from odradek.bounds.first_use import YOUNG_OBJECTS
from odradek.cli.errors import CommandFailed
from odradek.cli.examples import add_examples
from odradek.client.errors import ClientError
from odradek.plugin.config import ConfigError
from odradek.plugin.plugin_stats import described
from odradek.process.hangup import hold_hangup
from odradek.process.standard_streams import open_closed_streams, silence, unwritable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

FAILED = 1
UNUSABLE = 2
INTERRUPTED = 130
RELOADING = ("gateway", "serve")
"""The subcommands that follow SIGHUP, from their start."""

SUBCOMMANDS: Mapping[str, tuple[str, str]] = {
    "acls": ("odradek.cli.acls:acls", "List, add and remove ACLs."),
    "api-versions": ("odradek.cli.api_versions:api_versions", "Show the APIs of brokers."),
    "cardinality": ("odradek.cli.cardinality:cardinality", "Count the series of clients."),
    "certs": ("odradek.cli.certs:certs", "Make certificates for a laptop or a test."),
    "client-metrics": (
        "odradek.cli.client_metrics:client_metrics",
        "List, describe, alter and delete subscriptions.",
    ),
    "configs": ("odradek.cli.configs:configs", "Describe and alter configs."),
    "conformance": ("odradek.cli.conformance:conformance", "Report how a client implements KIP-714."),
    "consume": ("odradek.cli.consume:consume", "Print records of topics."),
    "delete-records": (
        "odradek.cli.delete_records:delete_records",
        "Delete the oldest records of partitions.",
    ),
    "demo": ("odradek.demo.demo:demo", "Show a real producer and consumer pushing their metrics."),
    "forward": ("odradek.cli.forward:forward", "Run forwarders on a telemetry topic of a cluster."),
    "gateway": ("odradek.cli.gateway:gateway", "Run a proxy in front of a Kafka cluster."),
    "get-offsets": ("odradek.cli.get_offsets:get_offsets", "Show offsets of partitions."),
    "groups": ("odradek.cli.groups:groups", "List, describe and delete groups; move their offsets."),
    "lag": ("odradek.cli.lag:lag", "Show how far groups are behind, in records and in time."),
    "new-plugin": ("odradek.cli.new_plugin:new_plugin", "Create a plugin from the template."),
    "plugins": ("odradek.cli.plugins:plugins", "List installed plugins."),
    "produce": ("odradek.cli.produce:produce", "Write records from standard input."),
    "quotas": ("odradek.cli.quotas:quotas", "Describe and alter quotas."),
    "replay": ("odradek.cli.replay:replay", "Make a forwarder deliver past pushes again."),
    "serve": ("odradek.cli.serve:serve", "Run a host."),
    "topology": ("odradek.cli.topology:topology", "Show who writes to and reads from which topic."),
    "topics": ("odradek.cli.topics:topics", "List, describe, create, alter and delete topics."),
    "totals": ("odradek.cli.totals:totals", "Rebuild the totals of a destination."),
    "users": ("odradek.cli.users:users", "List, describe, add and delete users of SASL listeners."),
    "verify-plugin": (
        "odradek.cli.verify_plugin:verify_plugin",
        "Check an installed plugin against the contract.",
    ),
}
"""Import path and one-line summary of each subcommand. The summary is here so that help imports nothing."""
COMMAND_GROUP = "odradek.commands"
"""Entry point group of the subcommands of plugins. Each entry point names a click command."""
EXTRAS = {
    "clients": "console",
    "console": "console",
    "spark": "spark",
    "subscriptions": "console",
    "top": "console",
    "watch": "console",
}
"""The extra that installs each subcommand of a plugin."""


class LazyGroup(click.Group):
    """A group whose subcommands are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*SUBCOMMANDS, *installed_commands()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return installed_command(cmd_name)
        module, _, name = SUBCOMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        add_examples(cmd_name, command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(summaries())

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        commands = [
            CompletionItem(name, help=text) for name, text in summaries() if name.startswith(incomplete)
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]


def summaries() -> list[tuple[str, str]]:
    """The names and summary lines of all subcommands, sorted. None of them is imported."""
    lines = {name: summary(found) for name, found in installed_commands().items()}
    return sorted((lines | {name: text for name, (_, text) in SUBCOMMANDS.items()}).items())


def installed_commands() -> dict[str, EntryPoint]:
    """The subcommands of installed plugins, not imported. A plugin cannot replace one of the host's."""
    from importlib.metadata import entry_points  # a tenth of the CPU of a command that talks to a broker

    return {found.name: found for found in entry_points(group=COMMAND_GROUP) if found.name not in SUBCOMMANDS}


def installed_command(name: str) -> click.Command | None:
    """The subcommand of a plugin; None if no installed plugin has one of this name.

    Raises:
        CommandFailed: It cannot be loaded, or it belongs to an extra that is not installed.
    """
    found = installed_commands().get(name)
    if found is None:
        if name in EXTRAS:
            raise CommandFailed(f"odradek {name}: not installed: install the extra odradek[{EXTRAS[name]}]")
        return None
    try:
        command = found.load()
    except Exception as error:
        raise CommandFailed(f"odradek {name}: {found.value} cannot be loaded: {described(error)}") from error
    if not isinstance(command, click.Command):
        raise CommandFailed(f"odradek {name}: {found.value} is not a click command")
    return command


def summary(found: EntryPoint) -> str:
    """The summary line of the distribution that provides a subcommand."""
    return "" if found.dist is None else str(found.dist.metadata.json.get("summary", ""))


@click.group(
    cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="odradek", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """A Kafka-protocol host for client telemetry (KIP-714)."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(UNUSABLE)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Args:
        arguments: The arguments without the program's name; None for those of the process.
    """
    gc.set_threshold(YOUNG_OBJECTS)  # `serve` and `gateway` have their own as soon as they run
    open_closed_streams()
    words = sys.argv[1:] if arguments is None else arguments
    if words and words[0] in RELOADING:
        hold_hangup()
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    try:
        status = cli.main(args=arguments, prog_name="odradek", standalone_mode=False)
        sys.stdout.flush()
    except (click.ClickException, ClientError, CommandFailed, ConfigError) as error:
        return explained(error)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except OSError as error:
        return not_printed(error)
    return status if isinstance(status, int) else 0


def explained(error: Exception) -> int:
    """Print the error in one line and return the exit status."""
    if unwritable() is not None:
        silence(sys.stdout)
    if isinstance(error, click.ClickException):
        return complain(located(error), error.exit_code)
    if isinstance(error, CommandFailed):
        return complain(str(error), FAILED)
    return complain(f"odradek: {error}", UNUSABLE if isinstance(error, ConfigError) else FAILED)


def complain(message: str, status: int) -> int:
    """Print the message to stderr as one line, even if it contains line breaks."""
    click.echo(" ".join(message.split()), err=True)
    return status


def located(error: click.ClickException) -> str:
    """The message of a command-line error, prefixed with the name of the command."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "odradek"
    return f"{command}: {error.format_message()}"


def not_printed(error: OSError) -> int:
    """Explain that stdout is full; a reader that has left (``| head``) needs no explanation.

    Raises:
        OSError: The error has nothing to do with stdout, so it is a bug.
    """
    reason = error if isinstance(error, BrokenPipeError) else unwritable("\n")
    if reason is None:
        raise error
    silence(sys.stdout)
    if isinstance(reason, BrokenPipeError):
        return FAILED
    return complain(f"odradek: cannot write to stdout: {reason.strerror}", FAILED)
