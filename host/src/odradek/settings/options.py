"""Options of a command, from the declarations of its settings.

A plugin whose program runs beside a host (`odradek.plugin.Companion`) declares its keys once. Its command has
an option for each of them, and the host passes those that the table has::

    @click.command()
    @options_of(CmdbSettings)
    def serve(**options):
        settings = settings_of(CmdbSettings, options)

The key ``max.clients`` is the option ``--max-clients``, unless `Setting.option` says otherwise. The option of
a list is repeated; an empty text is none of its items. The option of a key in milliseconds takes a time with
its unit, such as ``15m``, unless its name ends in ``-ms``, too.

Everybody on a machine sees the options of its programs, so a key with a secret has none: declare a `FILE`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

import click

from odradek.plugin.config import ConfigError, PluginConfig
from odradek.settings.kinds import TABLE, Duration, Flag, Kind, Whole
from odradek.settings.reading import Checked
from odradek.settings.setting import Section, Setting, declared, sections, walk
from odradek.wire.config_resource import ConfigType

T = TypeVar("T")
Decorator = Callable[[Any], Any]
TIME = Duration(1)


class Value(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """A value, read as from a table."""

    def __init__(self, setting: Setting, required: bool) -> None:
        self.setting, self.kind, self.required = setting, setting.kind, required
        self.name = metavar(setting)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str | list):
            return value
        if self.required and not value:
            self.fail("expected a value, found an empty text", param, ctx)
        if isinstance(value, str) and is_time(self.setting):
            try:
                value = TIME.parse(value)
            except ValueError:
                self.fail(f"expected a duration such as 30s, 15m or 12h, found {value!r}", param, ctx)
        key = self.setting.name
        try:
            return self.kind.read(PluginConfig("", {key: value}), key)
        except ConfigError as error:
            self.fail(error.problem, param, ctx)


def options_of(kind: Any, required: Collection[str] = ()) -> Decorator:
    """Adds an option for each setting of a dataclass and its sections to a command.

    Args:
        kind: The dataclass.
        required: Keys whose options must be given.
    """

    def add(command: Any) -> Any:
        for _, each in reversed(list(walk(kind))):
            command = option_of(each, required=each.name in required)(command)
        return command

    return add


def option_of(each: Setting, *, required: bool = False) -> Decorator:
    """Adds the option of a setting to a command; the parameter is the key with ``_`` for its dots.

    Raises:
        TypeError: The setting is a secret or a table.
    """
    if each.sensitive or each.kind is TABLE:
        raise TypeError(f"{each.name}: a secret or a table cannot be an option; declare a FILE with it")
    name, value = option_name(each), Value(each, required)
    more: dict[str, Any] = {"help": each.documentation.replace("`", ""), "required": required}
    if isinstance(each.kind, Flag):
        name, more = f"{name}/{no(name)}", more | {"default": each.default, "show_default": True}
    elif is_list(each.kind):

        def collected(context: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Any:
            return (
                value.convert([text for text in values if text], param, context) if values else each.default
            )

        default = f" Default: {each.unset}." if each.default else ""
        more |= {"multiple": True, "metavar": value.name, "callback": collected}
        more["help"] += f" May be repeated.{default}"
    else:
        more |= {"type": value, "metavar": value.name}
        if each.default not in (None, ""):
            more |= {"default": default_text(each), "show_default": True}
    return click.option(name, parameter_name(each.name), **more)


def settings_of(kind: Callable[..., T], options: dict[str, Any], within: Section | None = None) -> T:
    """Make a dataclass of settings from the values of its options, which are removed from ``options``.

    Raises:
        click.UsageError: Two values contradict each other; names the option of one of them.
    """
    values = {name: settings_of(part.type, options, part) for name, part in sections(kind).items()}
    for name, each in declared(kind).items():
        value = options.pop(parameter_name(within.named(each).name if within else each.name))
        if value is not None:
            values[name] = value
    made = kind(**values)
    if isinstance(made, Checked):
        try:
            made.check()
        except ConfigError as error:
            names = {each.name: option_name(each) for _, each in walk(kind)}
            raise click.UsageError(f"{names.get(error.path, error.path)}: {error.problem}") from None
    return made


def arguments(kind: Any, table: PluginConfig) -> list[str]:
    """The options for the keys that a table has, which `odradek.settings.read_settings` has read."""
    found = []
    for _, each in walk(kind):
        name, value = option_name(each), table.value(each.name)
        if value is None:
            continue
        if isinstance(each.kind, Flag):
            found.append(name if each.kind.read(table, each.name) else no(name))
        elif is_list(each.kind):
            found += [part for text in table.texts(each.name) or [""] for part in (name, text)]
        else:
            found += [name, f"{int(str(value))}ms" if is_time(each) else str(value)]
    return found


def option_name(each: Setting) -> str:
    """The option of a setting."""
    return each.option or "--" + each.name.replace(".", "-")


def parameter_name(key: str) -> str:
    return key.replace(".", "_")


def no(name: str) -> str:
    return name.replace("--", "--no-", 1)


def is_list(kind: Kind) -> bool:
    return kind.type is ConfigType.LIST


def is_time(each: Setting) -> bool:
    """Whether the option takes a time with its unit."""
    return each.unit == "ms" and not option_name(each).endswith("-ms")


def metavar(each: Setting) -> str:
    """The placeholder of the value in the help of a command."""
    if is_time(each):
        return TIME.metavar
    is_count = each.unit and each.kind.metavar == Whole.metavar
    return each.unit.upper() if is_count else each.kind.metavar


def default_text(each: Setting) -> str:
    """The default as a user would write it."""
    text = each.kind.text(each.default)
    return TIME.text(int(text)) if is_time(each) else text
