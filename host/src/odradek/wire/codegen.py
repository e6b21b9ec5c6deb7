"""Lines of Python source, compiled to a function.

Shared by the compiled codecs: indentation, fresh names, the globals of the function, and the registration
with `linecache` that lets tracebacks and debuggers show the lines.
"""

from __future__ import annotations

import contextlib
import linecache
import struct
from collections.abc import Callable, Iterator
from typing import Any

from odradek.wire.layout import Field, StructOf
from odradek.wire.types import NIL_UUID


class Source:
    """The source of a function, written line by line."""

    def __init__(self, constants: dict[str, Any]) -> None:
        self.lines: list[str] = []
        self.constants = {**constants, "NIL_UUID": NIL_UUID}
        self.names = 0
        self.depth = 0

    def line(self, text: str) -> None:
        """Add a line at the current depth."""
        self.lines.append("    " * self.depth + text)

    @contextlib.contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Indent the lines written inside under ``head``."""
        self.line(head)
        self.depth += 1
        yield
        self.depth -= 1

    def name(self, stem: str) -> str:
        """A local name that is not used yet."""
        self.names += 1
        return f"{stem}{self.names}"

    def cls(self, cls: type) -> str:
        """Make a class a global of the function and return its name, which is unique within a message."""
        self.constants[cls.__name__] = cls
        return cls.__name__

    def unpack(self, formats: str) -> str:
        """The name of a precompiled ``unpack_from`` for a run of fixed-width values."""
        name = "unpack_" + formats.replace("?", "t")
        self.constants.setdefault(name, struct.Struct(">" + formats).unpack_from)
        return name

    def pack(self, formats: str) -> str:
        """The name of a precompiled ``pack`` for a run of fixed-width values."""
        name = "pack_" + formats.replace("?", "t")
        self.constants.setdefault(name, struct.Struct(">" + formats).pack)
        return name

    def function(self, name: str, title: str) -> Callable[..., Any]:
        """Compile the lines, which define ``name``."""
        text = "\n".join(self.lines) + "\n"
        filename = f"<odradek.wire {title}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        exec(compile(text, filename, "exec"), self.constants)  # noqa: S102 (written from declarations only)
        compiled: Callable[..., Any] = self.constants[name]
        return compiled


def literal(field: Field) -> str | None:
    """The default of a field as an expression, None if it is a structure."""
    default = field.default()
    if isinstance(field.kind, StructOf) and default is not None:
        return None
    return "NIL_UUID" if default is NIL_UUID else repr(default)
