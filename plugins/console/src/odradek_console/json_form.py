"""The JSON of rows, and its schema: one rule for both, from the types of their fields.

* A pair of a text and a value in a tuple of pairs is a member of an object; other pairs are arrays.
* The members of a field named ``row`` stand beside those of the other fields.
* A number that is not finite is null, as JSON has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

Schema = dict[str, Any]


class Form(NamedTuple):
    """The JSON of one type."""

    convert: Callable[[Any], Any]
    schema: Schema
    """JSON Schema (2020-12), as OpenAPI 3.1 uses it."""


class JsonRow:
    """A dataclass with a form in JSON."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """The row as JSON has it."""
        found: dict[str, Any] = form(type(self)).convert(self)
        return found


def form(kind: Any) -> Form:
    """The JSON of a type.

    Raises:
        TypeError: There is no rule for it.
    """
    if kind not in KNOWN:
        KNOWN[kind] = new_form(kind)
    return KNOWN[kind]


def new_form(kind: Any) -> Form:
    """The JSON of a type that is met for the first time."""
    origin, parts = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return Form(lambda value: value.value, {"type": "string", "enum": [each.value for each in kind]})
    if origin in (Union, UnionType):
        return optional(form(next(each for each in parts if each is not NoneType)))
    if origin is tuple:
        return of_tuple(parts)
    if origin in (dict, Mapping):
        return of_members(form(parts[1]))
    if is_dataclass(kind):
        return of_fields(kind)
    raise TypeError(f"no JSON for {kind}")


def identity(value: Any) -> Any:
    """The value itself."""
    return value


def finite(value: float) -> float | None:
    """A number; None if it is not finite."""
    return value if math.isfinite(value) else None


KNOWN: dict[Any, Form] = {
    str: Form(identity, {"type": "string"}),
    int: Form(identity, {"type": "integer"}),
    bool: Form(identity, {"type": "boolean"}),
    float: Form(finite, {"type": ["number", "null"]}),
}


def optional(inner: Form) -> Form:
    """The JSON of a type, or null."""
    schema = {"anyOf": [inner.schema, {"type": "null"}]}
    return Form(lambda value: None if value is None else inner.convert(value), schema)


def of_tuple(parts: tuple[Any, ...]) -> Form:
    """The JSON of a tuple: an object of pairs with names, an array of its items, or one of fixed length."""
    if parts[1:] == (Ellipsis,):
        pair = get_args(parts[0]) if get_origin(parts[0]) is tuple else ()
        if len(pair) == 2 and pair[0] is str:
            return of_members(form(pair[1]))
        item = form(parts[0])
        return Form(
            lambda value: [item.convert(each) for each in value], {"type": "array", "items": item.schema}
        )
    forms = [form(each) for each in parts]
    schema = {
        "type": "array",
        "prefixItems": [each.schema for each in forms],
        "minItems": len(forms),
        "maxItems": len(forms),
    }
    return Form(
        lambda value: [each.convert(part) for each, part in zip(forms, value, strict=True)],
        schema,
    )


def of_members(inner: Form) -> Form:
    """The JSON of values by name."""
    schema = {"type": "object", "additionalProperties": inner.schema}
    return Form(
        lambda value: {key: inner.convert(each) for key, each in dict(value).items()},
        schema,
    )


def of_fields(kind: Any) -> Form:
    """The JSON of a dataclass."""
    hints = get_type_hints(kind)
    inner = {each.name: form(hints[each.name]) for each in fields(kind)}
    flat = inner.pop("row", None)
    properties = (flat.schema["properties"] if flat else {}) | {
        name: each.schema for name, each in inner.items()
    }
    schema = {"type": "object", "properties": properties, "required": list(properties)}

    def convert(value: Any) -> dict[str, Any]:
        found: dict[str, Any] = flat.convert(value.row) if flat else {}
        for name, each in inner.items():
            found[name] = each.convert(getattr(value, name))
        return found

    return Form(convert, schema)
