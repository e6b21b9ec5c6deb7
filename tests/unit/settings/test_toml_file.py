"""Dotted keys of the configuration file: quoted or not, and beside longer keys that begin like them."""

from __future__ import annotations

import tomllib

import pytest

from odradek.plugin.config import ConfigError
from odradek.settings.toml_file import flatten, parsed

BOTH = {"max.connections": 5, "max.connections.per.ip": 3}


@pytest.mark.parametrize(
    "text",
    [
        "max.connections = 5\nmax.connections.per.ip = 3\n",
        "max.connections.per.ip = 3\nmax.connections = 5",
        "  max.connections = 5  # all\r\n  max.connections.per.ip=3\r\n",
        '"max.connections" = 5\nmax.connections.per.ip = 3\n',
        'max.connections = 5\n"max.connections.per.ip" = 3\n',
    ],
)
def test_a_key_works_beside_a_longer_one_that_begins_like_it(text: str) -> None:
    assert flatten(parsed(text)) == BOTH


def test_three_keys_that_begin_alike_work_in_a_table_of_a_plugin() -> None:
    text = "[plugins.p]\na.b = 1\na.b.c = 2\na.b.c.d = 3\n[plugins.q]\na.b = 4\n"

    found = flatten(parsed(text))

    assert found == {"plugins.p.a.b": 1, "plugins.p.a.b.c": 2, "plugins.p.a.b.c.d": 3, "plugins.q.a.b": 4}


def test_a_value_of_several_lines_may_look_like_keys() -> None:
    text = 'a.b = 1\nx = """\na.b.c = 3\n"""\na.b.c = [\n  "a.b.d = 4",\n  "]",\n]\n'

    found = flatten(parsed(text))

    assert found == {"a.b": 1, "x": "a.b.c = 3\n", "a.b.c": ["a.b.d = 4", "]"]}


@pytest.mark.parametrize("again", ["node.id = 2", '"node.id" = 2', "[node]\nid = 2\n"])
def test_a_key_that_is_given_twice_is_refused(again: str) -> None:
    with pytest.raises((ConfigError, tomllib.TOMLDecodeError), match=r"node.id: given twice|Cannot declare"):
        flatten(parsed(f"node.id = 1\n{again}\n"))


@pytest.mark.parametrize(
    "text", ["a = 1\na = 2\n", "a.b = 1\n[a.b]\nc = 2\n", "a.b = \n", "x = {a.b=1,a.b.c=2}"]
)
def test_what_quotes_do_not_mend_keeps_the_error_of_the_parser(text: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError) as ours:
        parsed(text)
    with pytest.raises(tomllib.TOMLDecodeError) as theirs:
        tomllib.loads(text + "\n")

    assert str(ours.value) == str(theirs.value)
