"""Responses that refuse a request as a whole, made from the declarations of request and response.

Many responses have no room for an error at the top, so Kafka repeats it for every element of the request:
each topic, each partition of each topic, or each group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final

from odradek.wire.declared import response_of
from odradek.wire.error_code import ErrorCode
from odradek.wire.layout import ArrayOf, StructOf, hints_of, kind_of, without_null

Refusal = Callable[[Any, ErrorCode, str | None], Any]
IDENTITY: Final = frozenset(
    {
        "group_id",
        "index",
        "name",
        "partition",
        "partition_index",
        "resource_name",
        "resource_type",
        "topic",
        "topic_id",
    }
)
"""Fields that say what an element is about, in a request and in its response."""


def refusal_of(request: type[Any], asked: str | None, answered: str | None, **values: Any) -> Refusal:
    """`refusal_of_each`; without an array at the top of the response alone."""
    if asked is not None and answered is not None:
        return refusal_of_each(request, asked, answered, **values)
    response = response_of(request)
    return lambda _request, code, message: response(**errors(response, code, message), **values)


def refusal_of_each(request: type[Any], asked: str, answered: str, **values: Any) -> Refusal:
    """Refuse every element of a request, and at the top for versions that have room for it.

    Args:
        request: The class of the request.
        asked: The name of its array.
        answered: The name of the array of the response.
        values: Other fields of the elements that have the error.
    """
    response = response_of(request)

    @cache  # made at the first refusal: to evaluate the annotations takes most of the import of a handler
    def mirror() -> Mirror:
        return Mirror(element_of(response, answered), element_of(request, asked))

    def refuse(asking: Any, code: ErrorCode, message: str | None) -> Any:
        each_as = mirror()
        same = errors(each_as.leaf, code, message) | values
        refused = [each_as(each, same) for each in getattr(asking, asked) or ()]
        return response(**{answered: refused}, **errors(response, code, message))

    return refuse


class Mirror:
    """Makes the refusal of one element of a request.

    Args:
        answered: The class of the refusal.
        asked: The class of the element; None if it is the name or the number of something.
    """

    def __init__(self, answered: type[Any], asked: type[Any] | None) -> None:
        self.answered = self.leaf = answered
        fields = answered.__dataclass_fields__
        self.identity = next((name for name in fields if not name.startswith("error_")), "")
        self.same = None if asked is None else IDENTITY & fields.keys() & asked.__dataclass_fields__.keys()
        self.inner: Mirror | None = None
        if asked is not None and "error_code" not in fields:
            self.parts = next(name for name in fields if element_of(answered, name))
            self.asked_parts = next(name for name, hint in fields_of(asked) if is_array(hint))
            self.inner = Mirror(element_of(answered, self.parts), element_of(asked, self.asked_parts))
            self.leaf = self.inner.leaf

    def __call__(self, each: Any, errors: dict[str, Any]) -> Any:
        """The refusal of an element, with the error in itself or in its parts."""
        if self.same is None:
            return self.answered(**{self.identity: each}, **errors)
        same = {name: getattr(each, name) for name in self.same}
        if self.inner is None:
            return self.answered(**same, **errors)
        parts = [self.inner(part, errors) for part in getattr(each, self.asked_parts)]
        return self.answered(**same, **{self.parts: parts})


def errors(cls: type[Any], code: ErrorCode, message: str | None) -> dict[str, Any]:
    """The fields of a class that tell an error."""
    found = {"error_code": code, "error_message": message}
    return {name: value for name, value in found.items() if name in cls.__dataclass_fields__}


def fields_of(cls: type[Any]) -> Iterable[tuple[str, Any]]:
    """The names and annotations of a class."""
    return hints_of(cls).items()  # type: ignore[arg-type]  # mypy doubts that classes are hashable


def is_array(hint: Any) -> bool:
    """Whether a field is an array."""
    return isinstance(kind_of(without_null(hint) or hint, 0, False), ArrayOf)


def element_of(cls: type[Any], array: str) -> Any:
    """The class of the elements of an array; None for other elements and for other fields."""
    hint = dict(fields_of(cls))[array]
    kind = kind_of(without_null(hint) or hint, 0, False)
    element = kind.element if isinstance(kind, ArrayOf) else None
    return element.cls if isinstance(element, StructOf) else None
