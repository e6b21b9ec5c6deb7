"""Check at load time that an object of a plugin has the methods that the host will call.

Otherwise the first push would find out, and each one after it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator

from odradek.plugin.config import ConfigError
from odradek.plugin.places import place_of_definition


def check_interface(
    offer: object, interfaces: tuple[type, ...], path: str, source: str, where: str = ""
) -> None:
    """Check what a plugin returned.

    Args:
        offer: The object.
        interfaces: The runtime protocols of `odradek.plugin.protocols`, or other types, one of which it must
            implement.
        path: The plugin's table, for the error.
        source: The hook or method that returned the object.
        where: Its place, in brackets.

    Raises:
        ConfigError: It implements none of them, or one of its methods cannot be called as the host calls it.
    """
    implemented = [interface for interface in interfaces if isinstance(offer, interface)]
    kind = type(offer).__name__
    if inspect.isclass(offer):
        name = offer.__name__
        raise ConfigError(
            path, f"{source} returned the class {name}; return an instance of it, {name}(...){where}"
        )
    if not implemented:
        expected = " or ".join(interface.__name__ for interface in interfaces)
        lacks = " or ".join(filter(None, (missing(offer, interface) for interface in interfaces)))
        lacks = f": it lacks {lacks}" if lacks else ""
        raise ConfigError(path, f"{source} returned {kind}, expected {expected}{lacks}{where}")
    for interface in implemented:
        for name, expected_method in methods(interface):
            problem = method_problem(getattr(offer, name), expected_method)
            if problem is not None:
                where = place_of_definition(getattr(offer, name))
                raise ConfigError(path, f"{source} returned {kind}: {name}{where} {problem}")


def missing(offer: object, interface: type) -> str:
    """The methods of a protocol that an object lacks."""
    return ", ".join(name for name, _ in methods(interface) if not hasattr(offer, name))


def methods(interface: type) -> Iterator[tuple[str, Callable[..., object]]]:
    """The methods that a protocol declares."""
    for name, member in vars(interface).items() if getattr(interface, "_is_protocol", False) else ():
        if inspect.isfunction(member) and not name.startswith("_"):
            yield name, member


def method_problem(method: object, expected: Callable[..., object]) -> str | None:
    """The reason why a method cannot stand for the declared one; None if it can."""
    awaited = inspect.iscoroutinefunction(expected)
    arguments = list(inspect.signature(expected).parameters)[1:]
    parameters = ", ".join(("self", *arguments))
    declaration = f"expected {'async def' if awaited else 'def'} {expected.__name__}({parameters})"
    if not callable(method):
        return f"is {type(method).__name__}; {declaration}"
    if awaited and not inspect.iscoroutinefunction(method):
        return f"is not an async function, and the host awaits it; {declaration}"
    if not awaited and inspect.iscoroutinefunction(method):
        return f"is an async function, and the host does not await it; {declaration}"
    try:
        signature = inspect.signature(method)
    except ValueError:  # a method written in C may have none
        return None
    try:
        signature.bind(*arguments)
    except TypeError:
        return f"takes {signature}; {declaration}"
    return None
