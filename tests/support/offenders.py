"""One test for many cases that can fail in the same way: it names all that do."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def offenders(check: Callable[..., object], cases: Iterable[object]) -> dict[str, str]:
    """The cases whose check fails, each with its reason; a tuple is several arguments."""
    found = {}
    for case in cases:
        arguments = case if isinstance(case, tuple) else (case,)
        try:
            check(*arguments)
        except Exception as error:  # noqa: BLE001  told with its case
            found[", ".join(map(named, arguments))] = f"{type(error).__name__}: {error}"
    return found


def named(argument: object) -> str:
    return str(getattr(argument, "__name__", argument))
