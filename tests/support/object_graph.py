"""Finds objects that hold each other: what import-linter does for modules, for the objects of a host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import FunctionType, MethodType


def attributes(owner: object) -> Iterator[tuple[str, object]]:
    """The attributes of an object with their values."""
    if is_dataclass(owner):
        names = [each.name for each in fields(owner)]
    else:
        slots = [name for kind in type(owner).__mro__ for name in getattr(kind, "__slots__", ())]
        names = [*vars(owner), *slots] if hasattr(owner, "__dict__") else slots
    for name in names:
        if not name.startswith("__") and hasattr(owner, name):
            yield name, getattr(owner, name)


def contained(value: object) -> Iterator[object]:
    """The value, or the elements of a container."""
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    else:
        yield value


def is_ours(value: object) -> bool:
    return type(value).__module__.startswith("odradek.")


def held(owner: object) -> Iterator[tuple[str, object]]:
    """The objects of the host that an object holds, without those that it only calls."""
    for name, value in attributes(owner):
        for each in contained(value):
            if is_ours(each):
                yield f"{type(owner).__name__}.{name}", each


def called(owner: object) -> Iterator[tuple[str, object]]:
    """The objects of the host whose methods an object was given."""
    for name, value in attributes(owner):
        for each in contained(value):
            function = each.func if isinstance(each, partial) else each
            if isinstance(function, MethodType) and is_ours(function.__self__):
                if function.__self__ is not owner:
                    yield f"{type(owner).__name__}.{name}", function.__self__
            elif isinstance(function, FunctionType) and function.__closure__ is not None:
                for cell in function.__closure__:
                    if is_ours(cell.cell_contents) and cell.cell_contents is not owner:
                        yield f"{type(owner).__name__}.{name}", cell.cell_contents


def everything(top: object) -> Iterator[object]:
    """All objects of the host that can be reached."""
    seen, waiting = {id(top)}, [top]
    while waiting:
        owner = waiting.pop()
        yield owner
        for _, each in held(owner):
            if id(each) not in seen:
                seen.add(id(each))
                waiting.append(each)


def room(value: object) -> str:
    return type(value).__module__.split(".")[1]


def module(value: object) -> str:
    return type(value).__module__


def circles(top: object, part: Callable[[object], str] = room) -> set[str]:
    """The attributes that hold an object of another part from which the owner can be reached again."""
    return {
        name
        for owner in everything(top)
        for name, each in held(owner)
        if part(each) != part(owner) and any(reached is owner for reached in everything(each))
    }
