"""The keys of one configuration table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.plugin import ConfigError, PluginConfig
from odradek.settings import NEW_FILE


def config_of(**values: object) -> PluginConfig:
    return PluginConfig("plugins.x", {name.replace("__", "."): value for name, value in values.items()})


def test_absent_keys_have_their_defaults() -> None:
    config = config_of()

    values = [
        config.text("a"),
        config.text("a", "b"),
        config.integer("a", 7),
        config.boolean("a", True),
        config.texts("a", ("b",)),
        config.table("a"),
        config.file("a"),
    ]

    assert values == [None, "b", 7, True, ["b"], {}, None]


@pytest.mark.parametrize(("value", "expected"), [(5, 5), ("5", 5), ("-3", -3), (0, 0)])
def test_a_number_may_be_a_string(value: object, expected: int) -> None:
    config = config_of(a=value)

    number = config.integer("a", 1, least=-10, most=10)

    assert number == expected


@pytest.mark.parametrize("value", [11, -11, "many", "", 1.5, True, [1], "0x5"])
def test_a_number_out_of_range_or_of_another_type_is_refused(value: object) -> None:
    config = config_of(a__b=value)

    with pytest.raises(ConfigError, match="expected a whole number from -10 to 10, found") as caught:
        config.integer("a.b", 1, least=-10, most=10)

    assert caught.value.path == "plugins.x.a.b"


@pytest.mark.parametrize(
    ("value", "expected"), [(True, True), (False, False), ("true", True), ("FALSE", False)]
)
def test_a_boolean_may_be_a_string(value: object, expected: bool) -> None:
    config = config_of(a=value)

    found = config.boolean("a", not expected)

    assert found is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(["a", "b"], ["a", "b"]), ("a, b", ["a", "b"]), ("a", ["a"]), ("", []), ([], [])],
)
def test_a_list_may_be_a_string_with_commas(value: object, expected: list[str]) -> None:
    config = config_of(a=value)

    found = config.texts("a", ("default",))

    assert found == expected


def test_a_table_is_read_below_its_key() -> None:
    config = config_of(headers__a="1", headers__b__c="2", header="3")

    table = config.table("headers")

    assert table == {"a": "1", "b.c": "2"}


def test_a_file_must_exist(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("secret")
    bad, nobody = str(tmp_path / "other"), "~nobody-of-this-name/token"
    config = config_of(good=str(path), bad=bad, folder=str(tmp_path), nobody=nobody)

    found = config.file("good")

    assert found == path
    for key in ("bad", "folder", "nobody"):
        with pytest.raises(ConfigError, match="expected a file"):
            config.file(key)


def test_a_file_to_be_made_needs_its_folder(tmp_path: Path) -> None:
    nowhere, nobody = str(tmp_path / "none" / "totals"), "~nobody-of-this-name/totals"
    config = config_of(good=str(tmp_path / "new"), nowhere=nowhere, folder=str(tmp_path), nobody=nobody)

    assert NEW_FILE.read(config, "good") == tmp_path / "new"
    assert NEW_FILE.read(config, "absent") is None
    for key in ("nowhere", "folder", "nobody"):
        with pytest.raises(ConfigError, match="expected a file in an existing folder"):
            NEW_FILE.read(config, key)


READERS: list[tuple[Callable[[PluginConfig], object], object]] = [
    (lambda config: config.text("a"), 5),
    (lambda config: config.choice("a", "x", ("x", "y")), "z"),
    (lambda config: config.integer("a", 0), True),
    (lambda config: config.integer("a", 0), 1.5),
    (lambda config: config.boolean("a", True), "yes"),
    (lambda config: config.boolean("a", True), 1),
    (lambda config: config.texts("a"), [1]),
    (lambda config: config.texts("a"), {"b": 1}),
    (lambda config: config.file("a"), 5),
]


@pytest.mark.parametrize(("read", "value"), READERS)
def test_a_value_of_another_type_is_refused_with_the_key_and_the_expected_type(
    read: Callable[[PluginConfig], object], value: object
) -> None:
    config = config_of(a=value)

    with pytest.raises(ConfigError, match=r"^plugins\.x\.a: expected ") as caught:
        read(config)

    assert caught.value.problem.startswith("expected ")


def test_an_unread_key_is_refused() -> None:
    config = config_of(known="1", stray="2", headers__a="3")
    config.text("known")
    config.table("headers")

    with pytest.raises(ConfigError) as caught:
        config.finish()

    assert str(caught.value) == "plugins.x.stray: unknown key; known here: known, headers.*"


def test_a_misspelled_key_is_refused_with_the_nearest_name() -> None:
    config = config_of(labelz="1")
    config.text("labels")

    with pytest.raises(ConfigError, match=r"^plugins\.x\.labelz: unknown key \(did you mean labels\?\)$"):
        config.finish()


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("headrs.authorization", " (did you mean headers.authorization?)"),
        ("header", " (did you mean headers?)"),
        ("queue.retires.ms", " (did you mean queue.retries.ms?)"),
        ("queue.zzz", "; known in queue: queue.max.bytes, queue.retries.ms"),
        ("client.zzz", "; known in client: client.options.*"),
        ("client.optoins.a", " (did you mean client.options.a?)"),
        ("zzz", "; known here: endpoint, queue.max.bytes, queue.retries.ms, client.options.*, headers.*"),
    ],
)
@pytest.mark.parametrize("is_present", [False, True], ids=["tables absent", "tables present"])
def test_a_misspelled_table_is_refused_with_what_is_known_there(
    key: str, problem: str, is_present: bool
) -> None:
    present = {"headers.b": "1", "client.options.c": "2"} if is_present else {}
    config = PluginConfig("plugins.x", {**present, key: "1"})
    config.text("endpoint")
    config.integer("queue.max.bytes", 1)
    config.integer("queue.retries.ms", 1)
    config.table("headers")
    config.table("client.options")

    with pytest.raises(ConfigError) as caught:
        config.finish()

    assert caught.value.path == f"plugins.x.{key}"
    assert caught.value.problem == f"unknown key{problem}"


def test_a_text_where_a_table_is_expected_is_refused_without_showing_it() -> None:
    config = config_of(headers="secret")

    with pytest.raises(ConfigError) as caught:
        config.table("headers")

    assert str(caught.value) == "plugins.x.headers: expected a table of strings"


def test_an_empty_table_is_a_table() -> None:
    config = PluginConfig("plugins.x", {"headers": {}})

    table = config.table("headers")
    config.finish()

    assert table == {}


def test_a_completely_read_table_is_accepted() -> None:
    config = config_of(known="1", headers__a="3")
    config.text("known")
    config.text("absent")

    config.table("headers")

    config.finish()


def test_at_the_top_of_the_file_a_key_has_no_path_before_it() -> None:
    config = PluginConfig("", {"interval.ms": "soon"})

    with pytest.raises(ConfigError) as caught:
        config.integer("interval.ms", 1)

    assert caught.value.path == "interval.ms"
