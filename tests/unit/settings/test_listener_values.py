"""Values of settings for one listener, or for one SASL mechanism of a listener."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from odradek.plugin.config import ConfigError, PluginConfig
from odradek.settings.kinds import INT, TEXT, Whole
from odradek.settings.listener_values import (
    base_of,
    declaration_of,
    listener_key,
    of_listener,
    read_listener_values,
    wider_keys,
)
from odradek.settings.reading import by_key
from odradek.settings.setting import section, setting

LISTENERS = ("PLAINTEXT", "INTERNAL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Settings that listeners can have own values of."""

    key: str | None = setting("key.location", TEXT, None, "A file.", by_listener=True)
    chain: str | None = setting("chain.location", TEXT, None, "Another file.", by_listener=True)
    reauth_ms: int = setting("reauth.ms", Whole(INT, 1), 9, "A time.", by_listener=True, by_mechanism=True)
    shared: int = setting("shared", Whole(INT), 1, "Without own values.")

    def check(self) -> None:
        if self.key and not self.chain:
            raise ConfigError("key.location", "expected chain.location too")


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    """All settings."""

    part: Part = section(Part)


def read(values: Mapping[str, object]) -> dict[str, object]:
    table = PluginConfig("", values)
    found = read_listener_values(Everything, table, LISTENERS)
    table.finish()
    return found


def test_a_key_has_the_names_of_listener_and_mechanism_in_lower_case() -> None:
    assert listener_key("INTERNAL", "reauth.ms") == "listener.name.internal.reauth.ms"
    assert (
        listener_key("INTERNAL", "reauth.ms", "SCRAM-SHA-256")
        == "listener.name.internal.scram-sha-256.reauth.ms"
    )


@pytest.mark.parametrize(
    ("key", "base", "wider"),
    [
        ("reauth.ms", "reauth.ms", []),
        ("listener.name.a.reauth.ms", "reauth.ms", ["reauth.ms"]),
        ("listener.name.a.plain.reauth.ms", "reauth.ms", ["listener.name.a.reauth.ms", "reauth.ms"]),
        ("listener.name.a.oauthbearer.x", "x", ["listener.name.a.x", "x"]),
        ("listener.name.plain", "listener.name.plain", []),
    ],
)
def test_the_wider_keys_of_a_key_are_those_whose_value_it_replaces(
    key: str, base: str, wider: list[str]
) -> None:
    assert base_of(key) == base
    assert wider_keys(key) == [key, *wider]


@pytest.mark.parametrize(
    ("key", "known"),
    [
        ("reauth.ms", True),
        ("listener.name.a.reauth.ms", True),
        ("listener.name.a.plain.reauth.ms", True),
        ("listener.name.a.key.location", True),
        ("listener.name.a.plain.key.location", False),
        ("listener.name.a.shared", False),
        ("listener.name.a.other", False),
        ("other", False),
    ],
)
def test_only_declared_keys_have_own_values(key: str, known: bool) -> None:
    found = declaration_of(key, {name: each for name, (_, each) in by_key(Part).items()})

    assert (found and found.name) == (key if known else None)


def test_own_values_are_read_as_their_settings_say() -> None:
    values = {"listener.name.internal.reauth.ms": 5, "listener.name.internal.plain.reauth.ms": "6"}

    assert read(values) == {
        "listener.name.internal.reauth.ms": 5,
        "listener.name.internal.plain.reauth.ms": 6,
    }


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("listener.name.internal.reauth.ms", 0, "expected a whole number from 1 to 2147483647, found 0"),
        (
            "listener.name.other.reauth.ms",
            5,
            "no listener has the name other; known here: internal, plaintext",
        ),
        ("listener.name.INTERNAL.reauth.ms", 5, "no listener has the name INTERNAL; known here"),
        ("listener.name.internal.shared", 5, "unknown key"),
        ("listener.name.internal.plain.key.location", "x", "unknown key"),
    ],
)
def test_a_wrong_own_value_is_refused(key: str, value: object, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        read({key: value})

    assert error.value.path == key
    assert error.value.problem.startswith(problem)


def test_the_most_specific_value_applies() -> None:
    own = {
        "listener.name.internal.reauth.ms": 5,
        "listener.name.internal.plain.reauth.ms": 6,
        "listener.name.other.shared": 7,
    }

    found = [
        of_listener(Part(reauth_ms=4), own, listener, mechanism)
        for listener, mechanism in (
            ("PLAINTEXT", ""), ("INTERNAL", ""), ("INTERNAL", "PLAIN"), ("INTERNAL", "OAUTHBEARER"),
        )
    ]  # fmt: skip

    assert [each.reauth_ms for each in found] == [4, 5, 6, 5]


def test_own_values_that_contradict_each_other_are_refused() -> None:
    own = {"listener.name.internal.key.location": "k"}

    with pytest.raises(ConfigError) as error:
        of_listener(Part(), own, "INTERNAL")

    assert error.value.path == "listener.name.internal.key.location"
    assert of_listener(Part(chain="c"), own, "INTERNAL") == Part(key="k", chain="c")
