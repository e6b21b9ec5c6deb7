"""``odradek new-plugin``: creates a working plugin with its tests, under a name of the user's choice.

The template is ``contrib/plugin-template``, a plugin called "example" that is built and tested like any
other. The host's wheel contains it as ``odradek/plugin_template``; the repository has only one copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from odradek.cli.errors import CommandFailed
from odradek.programs.shipped import shipped

NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
EXAMPLE = re.compile(r"(?P<before>odradek[-_])?(?P<example>example|Example)")
LEFT_OUT = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", "dist"}


@click.command("new-plugin")
@click.argument("name")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Target folder; default: odradek-NAME.",
)
def new_plugin(name: str, directory: Path | None) -> None:
    """Create a plugin from the template: receiver, exporter, enricher, forwarder, and their tests.

    NAME is the plugin's name: its distribution is odradek-NAME, its configuration table [plugins.NAME].
    """
    name = name.replace("_", "-").removeprefix("odradek-")  # the distribution name gets the prefix below
    if not NAME.fullmatch(name):
        raise click.UsageError(f"expected lower-case words (a-z, 0-9) joined by -, found {name!r}")
    folder = directory or Path(f"odradek-{name}")
    if folder.exists() and any(folder.iterdir()):
        raise CommandFailed(f"{folder} exists and is not empty; choose another --directory")
    for path in write(name, folder):
        click.echo(path)


def write(name: str, folder: Path) -> Iterator[Path]:
    """Write the files and yield their paths.

    Raises:
        CommandFailed: A file cannot be written, or the template is missing.
    """
    root = template()
    for source in sorted(root.rglob("*")):
        inside = source.relative_to(root)
        if source.is_dir() or LEFT_OUT & set(inside.parts):
            continue
        target = folder / renamed(str(inside), name)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(renamed(source.read_text(encoding="utf-8"), name), encoding="utf-8")
        except OSError as error:
            raise CommandFailed(f"cannot write {target}: {error.strerror}") from error
        yield target


def template() -> Path:
    """The folder of the template.

    Raises:
        CommandFailed: The template is missing.
    """
    folder = shipped("plugin_template", "contrib/plugin-template")
    if not folder.is_dir():
        raise CommandFailed(f"the plugin template is missing in {folder}: reinstall odradek")
    return folder


def renamed(text: str, name: str) -> str:
    """Replace the name in ``odradek-example``, ``odradek_example``, ``ExampleReceiver`` and ``example``."""
    module = name.replace("-", "_")

    def other(found: re.Match[str]) -> str:
        if found["example"] == "Example":
            return "".join(part.capitalize() for part in module.split("_"))
        before = found["before"]
        if before is None:
            rest = text[found.end() : found.end() + 1]
            return module if rest == "_" else name
        return before + (name if before.endswith("-") else module)

    return EXAMPLE.sub(other, text)
