"""Declarations of settings, as metadata of the fields of a dataclass.

A package declares its settings next to the code that uses them::

    @dataclass(frozen=True, slots=True, kw_only=True)
    class TelemetryConfig:
        telemetry_max_bytes: int = setting(
            "telemetry.max.bytes", Whole(INT, 1), 1_048_576, "Largest push as received.", unit="bytes"
        )

A dataclass of settings may have others as sections. ``declared`` and ``sections`` list the settings and the
sections of a class, and `read_settings` makes an object from the configuration file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cache
from typing import Any

from odradek.plugin.config import ConfigError
from odradek.settings.kinds import BadElement, Choice, Kind

DECLARATION = "setting"
SECTION = "section"


class Scope(StrEnum):
    """The resource that a setting belongs to at run time."""

    START = ""
    """None: the setting is only read when the host starts."""
    BROKER = "broker"
    """One broker, or all brokers."""
    LISTENER = "listener"
    """One listener: it changes at run time only under the key of a listener."""
    TOPIC = "broker, topic"
    """Like `BROKER` as the default of topics, and each topic can have its own value."""
    GROUP = "group"
    """Each group; the host's own value is read when it starts."""
    BROKER_AND_GROUP = "broker, group"
    """Each group, and the host's own value can be changed, too."""
    SUBSCRIPTION = "subscription"
    """Each subscription; the host has no value."""
    QUOTA = "quota"
    """Each entity with quotas; the host has no value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One key."""

    name: str
    """The key of the configuration file and of BROKER resources."""
    kind: Kind
    default: Any
    documentation: str
    """One sentence."""
    unit: str = ""
    scope: Scope = Scope.START
    own_key: str = ""
    """The key of a TOPIC or GROUP resource, if the scope says so."""
    by_listener: bool = False
    """True: each listener can have its own value; see `listener_values`."""
    by_mechanism: bool = False
    """True: each SASL mechanism of a listener can have its own value, too."""
    in_file: bool = True
    """False: it can only be set at run time."""
    fallbacks: tuple[str, ...] = ()
    """Keys that apply, in this order, if this one is not set: its value is null then."""
    used: bool = True
    """False: the value is accepted and shown, but has no effect."""
    sensitive: bool = False
    """True: the value is never shown."""
    unset: str = ""
    """The text of the reference page instead of a default."""
    page: str = ""
    """A page with more about the setting, as a link from the reference page."""
    option: str = ""
    """The option of a command, if its name is not that of the key: ``--listen``; see `options`."""

    @property
    def default_text(self) -> str | None:
        """The default as Kafka prints it; None for null."""
        return self.text(self.default)

    @property
    def dynamic(self) -> bool:
        """Whether it can be changed on BROKER resources."""
        return self.scope in (Scope.BROKER, Scope.LISTENER, Scope.TOPIC, Scope.BROKER_AND_GROUP)

    def text(self, value: Any) -> str | None:
        """Return a value as Kafka prints it; None for null."""
        return None if value is None and not isinstance(self.kind, Choice) else self.kind.text(value)

    def parse(self, text: str) -> Any:
        """Return the value of an admin client's text.

        Raises:
            ConfigError: Not a value of this setting, in Kafka's words.
        """
        try:
            return self.kind.parse(text)
        except ValueError as error:
            shown = error.element if isinstance(error, BadElement) else text
            raise ConfigError(
                self.name, f"Invalid value {shown} for configuration {self.name}: {error}"
            ) from None

    def of_resource(self) -> Setting:
        """Return the same setting under the key of a topic or a group."""
        return replace(self, name=self.own_key)

    def of_broker(self) -> Setting:
        """Return the setting of a BROKER resource: its default is null if another key can replace it."""
        return replace(self, default=None) if self.fallbacks else self


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A dataclass of settings inside another one."""

    type: type[Any]
    prefix: str = ""
    """Prefix of each of its keys."""
    subject: str = ""
    """Text that replaces ``{subject}`` in each of its sentences."""

    def named(self, each: Setting) -> Setting:
        """Return a setting with its key and its sentence in this section."""
        if not self.prefix and not self.subject:
            return each
        words = each.documentation.replace("{subject}", self.subject)
        return replace(each, name=self.prefix + each.name, documentation=words)


def setting(name: str, kind: Kind, default: Any, documentation: str, **more: Any) -> Any:
    """Declare a setting; ``more`` are the other fields of `Setting`.

    Raises:
        ValueError: The default of a `Choice` is a word, or another value that no word stands for.
        TypeError: The kind is a class.
    """
    if isinstance(kind, type):
        raise TypeError(f"{name}: the kind is the class {kind.__name__}; write {kind.__name__}(...)")
    if isinstance(kind, Choice) and default is not None and default not in kind.choices.values():
        values = list(kind.choices.values())
        raise ValueError(f"{name}: the default {default!r} is none of {values}, the values of the words")
    declaration = Setting(name=name, kind=kind, default=default, documentation=documentation, **more)
    if default.__class__.__hash__ is None:  # a mapping
        return field(default_factory=lambda: default, metadata={DECLARATION: declaration})
    return field(default=default, metadata={DECLARATION: declaration})


def section(kind: type[Any], prefix: str = "", subject: str = "") -> Any:
    """Declare a section."""
    return field(default_factory=kind, metadata={SECTION: Section(type=kind, prefix=prefix, subject=subject)})


@cache
def declared(kind: Any) -> Mapping[str, Setting]:
    """The settings of a dataclass without its sections, by field."""
    return {each.name: each.metadata[DECLARATION] for each in fields(kind) if DECLARATION in each.metadata}


@cache
def sections(kind: Any) -> Mapping[str, Section]:
    """The sections of a dataclass, by field."""
    return {each.name: each.metadata[SECTION] for each in fields(kind) if SECTION in each.metadata}


def walk(kind: Any, within: Section | None = None) -> Iterator[tuple[tuple[str, ...], Setting]]:
    """Yield all settings of a dataclass and its sections in their order, each with the path of its fields."""
    for at in fields(kind):
        if DECLARATION in at.metadata:
            each = at.metadata[DECLARATION]
            yield (at.name,), within.named(each) if within else each
        elif SECTION in at.metadata:
            part = at.metadata[SECTION]
            for path, each in walk(part.type, part):
                yield (at.name, *path), each
