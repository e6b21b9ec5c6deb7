"""The results of an administrative request: their codes, and what the first refused ones were told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from odradek.wire.error_code import ErrorCode
from odradek.wire.types import EncodedElements

SHOWN: Final = 20
"""Things to change, and problems, that one line of the audit log names."""
LONGEST: Final = 256
"""Characters of each of them."""
NAMES: Final = ("name", "resource_name", "group_id", "user", "topic", "topic_name", "feature")
"""The field of a result that says what it is about."""


def shortened(text: str) -> str:
    """The beginning of a text that clients choose."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


@dataclass(slots=True)
class Results:
    """The results of one request."""

    codes: Counter[ErrorCode] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def note(self, result: Any) -> None:
        """Add the result of one thing."""
        found = list(errors(result))
        self.codes.update(ErrorCode[name] for name in found)
        if not found:
            self.codes[ErrorCode.NONE] += 1
        elif len(self.problems) < SHOWN:
            name = next((str(value) for each in NAMES if (value := getattr(result, each, None))), "")
            message = getattr(result, "error_message", None) or ", ".join(found[:SHOWN])
            self.problems.append(shortened(f"{name}: {message}" if name else message))

    def refused(self, code: ErrorCode, message: str | None, count: int) -> None:
        """Add the same refusal of several things."""
        self.codes[code] += count
        self.problems.append(shortened(message or code.name))

    def add(self, other: Results) -> None:
        """Add the results of another part of the request."""
        self.codes.update(other.codes)
        self.problems.extend(other.problems[: SHOWN - len(self.problems)])


class EncodedResults(EncodedElements):
    """Encoded elements of an administrative response, with their results for the audit log."""

    def __init__(self) -> None:
        super().__init__()
        self.results = Results()


def errors(part: Any) -> Iterator[str]:
    """The names of the error codes in a message and in the messages within it."""
    for name in getattr(part, "__dataclass_fields__", ()):
        value = getattr(part, name)
        if name.endswith("error_code"):
            if value:
                yield ErrorCode(value).name
        elif isinstance(value, list):
            for each in value:
                yield from errors(each)
        else:
            yield from errors(value)
