"""The tables of ``reference/configuration.md`` are those of the declarations, and its examples are good."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from contrib.docs.configuration_reference import tables

from odradek.cli.serve import serve
from odradek.hosting.active_plugin import PluginState, activate
from odradek.hosting.plugin_manager import load_plugins
from odradek.programs.config import load_config
from support.reference_page import ROOT, blocks, page, sections

PAGE = "reference/configuration.md"
SCRIPT = "contrib.docs.configuration_reference"


def test_the_tables_are_those_of_the_declarations() -> None:
    command = [sys.executable, "-m", SCRIPT, "--check"]

    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert (result.returncode, result.stderr) == (0, "")


def test_every_declared_key_is_on_the_page() -> None:
    text = page(PAGE)

    assert [each.name for found in tables().values() for each in found if f"`{each.name}`" not in text] == []


def test_no_key_is_documented_by_hand() -> None:
    by_hand = [
        line
        for title, text in sections(PAGE).items()
        if title != "Environment"
        for part in text.split("\n\n")
        if "<!-- settings: " not in part
        for line in part.splitlines()
        if line.startswith("|")
    ]

    assert page(PAGE).count("<!-- settings: ") == page(PAGE).count("| key | type | default |")
    assert by_hand == []


@pytest.mark.parametrize(
    "name", ["reference/configuration.md", "howto/enrich-labels.md", "howto/forward-otlp.md"]
)
def test_tables_on_the_pages_are_valid_configuration(name: str, tmp_path: Path) -> None:
    tables = [text for language, text in blocks(name) if language == "toml" and "entry-points" not in text]
    file = tmp_path / "odradek.toml"

    for table in tables:
        file.write_text(table, encoding="utf-8")
        config = load_config(file)
        active = activate(load_plugins(), config.plugins)
        names = {plugin.name for plugin in active if plugin.state is PluginState.ACTIVE}
        assert names >= config.plugins.keys()

    assert tables


def test_the_help_of_serve_ends_with_the_path_of_the_page() -> None:
    shown = CliRunner().invoke(serve, ["--help"]).output

    assert Path(shown.splitlines()[-1].strip()).read_text(encoding="utf-8") == page(PAGE)
