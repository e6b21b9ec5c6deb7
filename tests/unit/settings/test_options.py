"""The options of a command are its settings: the same words, the same bounds, the same errors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from odradek.plugin import ConfigError, PluginConfig
from odradek.settings import (
    FILE,
    LIST,
    LONG,
    NEW_FILE,
    TABLE,
    TEXT,
    Choice,
    Duration,
    Flag,
    Items,
    Kind,
    Number,
    Special,
    Whole,
    declare,
    read_settings,
    section,
)
from odradek.settings.options import arguments, option_of, options_of, settings_of
from odradek.settings.setting import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    most: int = declare("most", Whole(LONG, 1, 9), 5, "Limit of `things`.", unit="things")
    idle_ms: int = declare(
        "idle.ms", Whole(LONG, 1, 86_400_000), 7_200_000, "Rest.", unit="ms", option="--idle"
    )
    pause_ms: int = declare("pause.ms", Whole(LONG, 1), 10, "Between two.", unit="ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSettings:
    servers: str | None = declare("servers", TEXT, None, "The cluster.", option="--server")
    mode: int = declare("mode", Choice({"slow": 1, "fast": 2}), 1, "How.")
    ca: Path | None = declare("ca", FILE, None, "Authorities.")
    names: tuple[str, ...] = declare("names", Items(), ("a",), "Who.", unset="only a", option="--name")
    is_loud: bool = declare("loud", Flag(), True, "Say it.")
    bounds: Bounds = section(Bounds, prefix="max.")

    def check(self) -> None:
        if self.bounds.most < self.mode:
            raise ConfigError("max.most", "expected at least the mode")


@click.command()
@options_of(OwnSettings, required=["servers"])
@click.option("--once", is_flag=True)
def command(once: bool, **options: Any) -> None:
    click.echo(repr(settings_of(OwnSettings, options)))
    assert options == {}
    assert not once


def asked(*given: str) -> tuple[int, str]:
    answer = CliRunner().invoke(command, ["--server", "here", *given])
    return answer.exit_code, answer.output


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"mode": "fast", "max.most": 9, "max.idle.ms": 60_000, "max.pause.ms": "7"},
        {"names": ["x", "y z"], "loud": False, "ca": __file__},
        {"names": "x,y", "loud": "true", "max.idle.ms": "60_000"},
    ],
)
def test_a_command_with_the_options_of_a_table_has_its_settings(values: dict[str, object]) -> None:
    table = PluginConfig("plugins.own", values | {"servers": "here"})

    given = arguments(OwnSettings, table)

    answer = CliRunner().invoke(command, given)
    assert answer.output == repr(read_settings(OwnSettings, table)) + "\n"


def test_a_command_passes_no_option_that_the_table_lacks() -> None:
    assert arguments(OwnSettings, PluginConfig("plugins.own", {})) == []


def test_a_time_has_its_unit_unless_the_option_names_it() -> None:
    code, told = asked("--idle", "15m", "--max-pause-ms", "30")

    assert code == 0
    assert "idle_ms=900000, pause_ms=30" in told
    assert asked("--max-pause-ms", "30s")[0] == 2


@pytest.mark.parametrize(
    ("given", "option", "problem"),
    [
        (("--max-most", "10"), "--max-most", "expected a whole number from 1 to 9, found '10'"),
        (("--idle", "2"), "--idle", "expected a duration such as 30s, 15m or 12h, found '2'"),
        (("--idle", "2d"), "--idle", "expected a whole number from 1 to 86400000, found 172800000"),
        (("--mode", "quick"), "--mode", "expected one of slow, fast, found 'quick'"),
        (("--ca", "/none"), "--ca", "expected a file, found '/none'"),
        (("--mode", "fast", "--max-most", "1"), "--max-most", "expected at least the mode"),
    ],
)
def test_a_wrong_value_is_told_as_in_a_table(given: tuple[str, ...], option: str, problem: str) -> None:
    code, told = asked(*given)

    assert code == 2
    assert option in told
    assert problem in told


def test_a_required_key_must_be_given() -> None:
    answer = CliRunner().invoke(command, [])

    assert answer.exit_code == 2
    assert "--server" in answer.output


def test_the_help_has_names_units_and_defaults() -> None:
    told = " ".join(asked("--help")[1].split())

    assert "--mode [slow|fast] How. [default: slow]" in told
    assert "--max-most THINGS Limit of things. [default: 5]" in told
    assert "--idle TIME Rest. [default: 2h]" in told
    assert "--name TEXT Who. May be repeated. Default: only a." in told
    assert "--loud / --no-loud Say it. [default: loud]" in told


@pytest.mark.parametrize(
    ("kind", "unit", "option", "shown"),
    [
        (Whole(), "", "--key", "INTEGER"),
        (Whole(), "ms", "--key", "TIME"),
        (Whole(), "ms", "--key-ms", "MS"),
        (Number(), "", "--key", "NUMBER"),
        (Duration(), "", "--key", "TIME"),
        (NEW_FILE, "", "--key", "FILE"),
        (Items(("a", "b")), "", "--key", "[a|b]"),
        (Special(shape="text", read=PluginConfig.text), "", "--key", "TEXT"),
        (Special(type=LIST, shape="list", metavar="URL", read=PluginConfig.texts), "", "--key", "URL"),
        (Special(type=LONG, shape="-", metavar="INTEGER", read=PluginConfig.text), "bytes", "--key", "BYTES"),
    ],
)
def test_a_kind_says_what_stands_for_its_values(kind: Kind, unit: str, option: str, shown: str) -> None:
    setting = Setting(name="key", kind=kind, default=None, documentation="A key.", unit=unit, option=option)
    asked = CliRunner().invoke(click.command()(option_of(setting)(lambda **_: None)), ["--help"])

    assert f"{option} {shown} " in " ".join(asked.output.split())


def test_an_empty_list_is_no_default() -> None:
    table = PluginConfig("plugins.own", {"servers": "here", "names": []})

    answer = CliRunner().invoke(command, arguments(OwnSettings, table))

    assert answer.output == repr(read_settings(OwnSettings, table)) + "\n"
    assert "names=()" in answer.output


def test_an_empty_text_is_no_required_value() -> None:
    answer = CliRunner().invoke(command, ["--server", ""])

    assert answer.exit_code == 2
    assert "--server" in answer.output


@pytest.mark.parametrize("declared", [{"kind": TEXT, "sensitive": True}, {"kind": TABLE}])
def test_a_secret_and_a_table_are_no_options(declared: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"token: .* FILE"):
        option_of(Setting(name="token", default=None, documentation="A token.", **declared))


def test_a_file_of_nobody_is_told() -> None:
    code, told = asked("--ca", "~no-such-user/ca.pem")

    assert code == 2
    assert "expected a file, found '~no-such-user/ca.pem'" in told
