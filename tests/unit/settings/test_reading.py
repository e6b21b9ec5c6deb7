"""Dataclasses of settings, read from a table and changed by the texts of an admin client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from odradek.plugin.config import ConfigError, PluginConfig
from odradek.settings.kinds import INT, LONG, TABLE, TEXT, Choice, Duration, Flag, Items, Number, Whole
from odradek.settings.reading import changed, read_settings
from odradek.settings.setting import Scope, section, setting
from odradek.settings.start_values import start_values

A_DURATION = "expected a duration such as 200ms, 30s, 5m, 2h or 7d, from 1s to 1h"


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """A section that occurs twice."""

    count: int = setting("window.num", Whole(INT, 1), 11, "Windows of {subject}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One setting of each kind."""

    size: int = setting("size.bytes", Whole(LONG, 1), 100, "A size.", scope=Scope.BROKER)
    percent: int = setting("percent", Whole(INT, 0, 100), 50, "A bounded number.")
    share: float = setting("share", Number(0, 1), 0.5, "A share.")
    enable: bool = setting("enable", Flag(), True, "A flag.")
    color: str = setting("color", Choice({"red": "r", "green": "g"}), "r", "A choice.")
    names: tuple[str, ...] = setting("names", Items(("a", "b")), ("a",), "A list.")
    speed: float = setting("speed", Number(), 1.0, "A number without an upper bound.")
    pause_ms: int = setting("pause", Duration(1_000, 3_600_000), 90_000, "A time with its unit.")
    servers: tuple[str, ...] = setting("servers", Items(least=1, most=2), ("a",), "A bounded list.")
    teams: Mapping[str, str] = setting("teams", TABLE, {}, "A table.")
    title: str | None = setting("title", TEXT, None, "A text.")
    waits_ms: int = setting("waits.ms", Whole(LONG), 60_000, "A time.", fallbacks=("waits.minutes",))
    secret: int = setting("at.run.time", Whole(INT), 1, "Not in the file.", in_file=False)
    first: Windows = section(Windows, "first.", "the first kind")
    second: Windows = section(Windows, "second.", "the second kind")

    def check(self) -> None:
        if self.percent == 13:
            raise ConfigError("percent", "expected another number than 13")


def test_an_empty_table_is_the_defaults() -> None:
    assert read_settings(Example, PluginConfig("", {})) == Example()


@pytest.mark.parametrize("as_text", [False, True])
def test_values_are_read_as_toml_has_them_and_as_texts(as_text: bool) -> None:
    values: dict[str, object] = {
        "size.bytes": 5, "percent": 7, "share": 0.25, "enable": False, "color": "green",
        "title": "x", "second.window.num": 3, "speed": 2.5, "pause": "5 m", "teams.red": "alice",
    }  # fmt: skip
    if as_text:
        values = {key: str(value).lower() for key, value in values.items()}
    table = PluginConfig("", values | {"names": "b, a" if as_text else ["b", "a"]})

    read = read_settings(Example, table)

    table.finish()
    assert read == Example(
        size=5, percent=7, share=0.25, enable=False, color="g", names=("b", "a"), title="x",
        speed=2.5, pause_ms=300_000, teams={"red": "alice"}, second=Windows(count=3),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("size.bytes", 0, "expected a whole number from 1 to 9223372036854775807, found 0"),
        ("percent", "many", "expected a whole number from 0 to 100, found 'many'"),
        ("percent", 13, "expected another number than 13"),
        ("share", 1.5, "expected a number from 0 to 1, found 1.5"),
        ("share", "half", "expected a number from 0 to 1, found 'half'"),
        ("enable", "perhaps", "expected true or false, found 'perhaps'"),
        ("color", "blue", "expected one of red, green, found 'blue'"),
        ("names", ["a", "c"], "expected a list of a, b, found 'a,c'"),
        ("speed", -1, "expected a number from 0, found -1"),
        ("speed", True, "expected a number from 0, found True"),
        ("pause", 30, f"{A_DURATION}, found 30"),
        ("pause", "30", f"{A_DURATION}, found '30'"),
        ("pause", "2h", f"{A_DURATION}, found '2h'"),
        ("servers", [], "expected one or more of texts, found ''"),
        ("servers", ["a", "b", "c"], "expected at most 2 items, found 3"),
        ("teams.red", 5, "expected a string, found 5"),
        ("title", 5, "expected a string, found 5"),
        ("first.window.num", 0, "expected a whole number from 1 to 2147483647, found 0"),
    ],
)
def test_a_wrong_value_names_its_path_and_what_was_expected(key: str, value: object, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_settings(Example, PluginConfig("plugins.x", {key: value}))

    assert (error.value.path, error.value.problem) == (f"plugins.x.{key}", problem)


def test_a_key_of_run_time_is_unknown_to_the_file() -> None:
    table = PluginConfig("", {"at.run.time": 5})
    read_settings(Example, table)

    with pytest.raises(ConfigError, match="unknown key"):
        table.finish()


@pytest.mark.parametrize(
    ("key", "text", "problem"),
    [
        ("size.bytes", " 0 ", "Invalid value 0 for configuration size.bytes: Value must be at least 1"),
        ("size.bytes", "1e3", "Invalid value 1e3 for configuration size.bytes: Not a number of type LONG"),
        ("size.bytes", "1_0", "Invalid value 1_0 for configuration size.bytes: Not a number of type LONG"),
        ("percent", "101", "Invalid value 101 for configuration percent: Value must be no more than 100"),
        ("share", "2", "Invalid value 2.0 for configuration share: Value must be no more than 1"),
        (
            "enable",
            "1",
            "Invalid value 1 for configuration enable: Expected value to be either true or false",
        ),
        ("color", "blue", "Invalid value blue for configuration color: String must be one of: red, green"),
        ("names", "a, c", "Invalid value c for configuration names: String must be one of: a, b"),
    ],
)
def test_a_wrong_text_of_a_client_is_refused_in_kafkas_words(key: str, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        changed(Example(), {key: text})

    assert error.value.problem == problem


def test_texts_of_a_client_change_what_they_name() -> None:
    found = changed(Example(percent=7), {"size.bytes": " +5 ", "names": "b , a,b", "enable": " TRUE "})

    assert found == Example(percent=7, size=5, names=("b", "a"))


def test_start_values_are_texts_and_say_what_was_given() -> None:
    values = start_values(Example(enable=False, waits_ms=120_000), {"percent", "enable"})

    assert "at.run.time" not in values
    assert {key: (each.text, each.given) for key, each in values.items() if each.given} == {
        "percent": ("50", True),
        "enable": ("false", True),
    }
    assert (values["title"].text, values["names"].text, values["color"].text) == (None, "a", "red")
    assert (values["waits.ms"].text, values["waits.ms"].setting.default_text) == (None, None)
    assert values["second.window.num"].setting.documentation == "Windows of the second kind."


def test_without_a_file_what_differs_from_its_default_was_given() -> None:
    values = start_values(Example(waits_ms=5))

    assert [(key, each.text) for key, each in values.items() if each.given] == [("waits.ms", "5")]


def test_a_kind_is_no_class() -> None:
    with pytest.raises(TypeError, match=r"waits: the kind is the class Duration; write Duration\(\.\.\.\)"):
        setting("waits", Duration, 5, "A time.")  # type: ignore[arg-type]


def test_settings_are_a_dataclass() -> None:
    class Plain:
        waits: int = setting("waits", Duration(), 5, "A time.")

    with pytest.raises(TypeError, match="Plain is no dataclass; write @dataclass"):
        read_settings(Plain, PluginConfig("plugins.x", {}))


def test_the_default_of_a_choice_is_one_of_its_values() -> None:
    with pytest.raises(ValueError, match=r"color: the default 'red' is none of \['r', 'g'\], the values"):
        setting("color", Choice({"red": "r", "green": "g"}), "red", "A choice.")
