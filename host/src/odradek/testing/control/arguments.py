"""The arguments of an operation, from JSON. The signature of its function says what it takes."""

from __future__ import annotations

import base64
import binascii
import collections.abc
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from odradek.testing.fault import meant

UNIONS = (Union, UnionType)
OWN = "base64"
"""The only key of an object that stands for bytes that are not UTF-8."""

Converters = Mapping[Any, Callable[[object], object]]
"""Functions that make an argument from JSON, by type. They raise `Mismatch` or ValueError."""


class Mismatch(Exception):
    """The JSON value does not fit the type."""


def arguments(
    function: Callable[..., object], given: Mapping[str, object], converters: Converters
) -> dict[str, object]:
    """Return the keyword arguments for a function.

    Raises:
        ValueError: An argument is missing, unknown, or of another type.
    """
    parameters = inspect.signature(function).parameters
    hints = get_type_hints(function)
    named = {name for name, each in parameters.items() if each.kind is not each.VAR_KEYWORD}
    further = next((name for name in parameters if name not in named), None)
    for name, parameter in parameters.items():
        if name in named and parameter.default is parameter.empty and name not in given:
            raise ValueError(f"argument {name!r} is missing: {signature_text(function)}")
    found = {}
    for name, value in given.items():
        if name not in named and further is None:
            raise ValueError(
                f"unknown argument {name!r}{meant(name, named)}; expected {signature_text(function)}"
            )
        hint = hints.get(name if name in named else str(further), object)
        try:
            found[name] = converted(value, hint, converters)
        except Mismatch:
            raise ValueError(f"{name}={value!r}: expected {type_text(hint)}") from None
    return found


def converted(value: object, hint: Any, converters: Converters) -> object:
    """Return a JSON value as an object of a type.

    Raises:
        Mismatch: It does not fit.
    """
    if hint in UNIONS or get_origin(hint) in UNIONS:
        for part in get_args(hint):
            with suppress(Mismatch):
                return converted(value, part, converters)
        raise Mismatch
    if hint in converters:
        return converters[hint](value)
    return compound(value, hint, converters) if get_args(hint) else scalar(value, hint)


def compound(value: object, hint: Any, converters: Converters) -> object:
    """Convert to a literal, a sequence or a mapping."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal and value in parts:
        return value
    if isinstance(value, list) and origin in (list, collections.abc.Sequence, collections.abc.Iterable):
        return [converted(each, parts[0], converters) for each in value]
    if isinstance(value, dict) and origin in (dict, collections.abc.Mapping):
        return {key_of(key, parts[0]): converted(each, parts[1], converters) for key, each in value.items()}
    raise Mismatch


def key_of(key: str, hint: Any) -> str | int:
    """The key of a mapping; JSON has only texts."""
    if hint is not int:
        return key
    if not (key.isascii() and key.isdecimal()):
        raise Mismatch
    return int(key)


def scalar(value: object, hint: Any) -> object:
    """Convert to a type without parts."""
    if hint is bytes:
        return as_bytes(value)
    if hint is float and type(value) is int:
        return value
    if hint in (object, Any) or type(value) is hint:
        return value
    raise Mismatch


def as_bytes(value: object) -> bytes:
    """The bytes of a text, or of ``{"base64": "..."}``."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and value.keys() == {OWN} and isinstance(value[OWN], str):
        with suppress(binascii.Error, ValueError):
            return base64.b64decode(value[OWN], validate=True)
    raise Mismatch


def type_text(hint: Any) -> str:
    """The JSON that a caller can send for a type."""
    if get_origin(hint) in UNIONS:
        return " or ".join(text for part in get_args(hint) if (text := type_text(part)))
    if get_origin(hint) is Literal:
        return " or ".join(repr(part) for part in get_args(hint) if isinstance(part, str))
    if get_args(hint):
        name = "an object" if get_origin(hint) in (dict, collections.abc.Mapping) else "a list"
        return f"{name} of {type_text(get_args(hint)[-1])}"
    names: dict[Any, str] = {
        str: "text",
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        bytes: 'text or {"base64": "..."}',
        NoneType: "null",
    }
    return names.get(hint, "")


def signature_text(function: Callable[..., object]) -> str:
    """The arguments of a function: ``topic, partition=0``."""
    texts = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            texts.append("...")
        elif parameter.default in (parameter.empty, None) or not isinstance(
            parameter.default, str | int | float
        ):
            texts.append(name if parameter.default is parameter.empty else f"{name}=")
        else:
            texts.append(f"{name}={parameter.default!r}")
    return ", ".join(texts) or "no arguments"
