"""The elements of a response, which a handler yields one by one.

A response that takes more than one turn of the loop is encoded while it is made: it then takes as much memory
as its bytes, no turn encodes all of it, and it is refused as soon as it exceeds ``response.max.bytes``. So
the size of the answer bounds the cost of a request, whatever it names, and however often.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from odradek.broker.answering import Answering
from odradek.broker.dispatch.administration import ADMINISTRATIVE
from odradek.broker.dispatch.throttling import Mutated
from odradek.broker.results import EncodedResults
from odradek.waiting.deferred import Deferred
from odradek.waiting.step_runner import StepRunner
from odradek.waiting.steps import Pause, Step
from odradek.wire.api_error import ApiError
from odradek.wire.codec import element_writer
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT64_MAX
from odradek.wire.types import EncodedElements

Elements = Generator[Any, Any, Any]
"""The work of a handler: yields elements, None after a part of one, or what the runner waits for; returns the
response without its elements.
"""


E = TypeVar("E")
AT_A_TIME = 20
"""The most parts of an element that are made in one step."""


@dataclass(frozen=True, slots=True)
class Composed:
    """An element with many parts, which are made and encoded one by one."""

    element: Any
    array: str
    """The name of the array of its parts."""
    parts: Sequence[Callable[[], Any]]
    """Functions that make them."""


def composed(element: E, array: str, parts: Sequence[Callable[[], Any]]) -> E | Composed:
    """An element with its parts, which are made here unless they are many."""
    if len(parts) > AT_A_TIME:
        return Composed(element, array, parts)
    setattr(element, array, [make() for make in parts])
    return element


def gathered(
    work: Elements,
    response: type[Any],
    array: str,
    version: int,
    broker: Answering,
    *,
    droppable: bool,
    large: bool = False,
) -> Any:
    """Collect the elements in steps. Returns the whole response, or a deferred of it.

    Args:
        work: The work of the handler.
        response: The class of the response.
        array: The name of its array.
        version: The version of the request.
        broker: The broker that answers.
        droppable: The request changes nothing, so its work ends when the connection is lost, and
            ``response.max.bytes`` applies.
        large: Encode the first element already: encoding the elements takes longer than making them.

    Raises:
        ApiError: POLICY_VIOLATION: the response becomes too large.
    """
    collected = Collected(response, array, version, broker, limited=droppable)
    return broker.steps.answer(collecting(work, collected, broker.steps, large), droppable=droppable)


def collecting(work: Elements, collected: Collected, steps: StepRunner, large: bool) -> Elements:
    """Collect the elements, a step for each, and return the whole response."""
    begun = steps.turns
    if large:
        yield from collected.encode()
    proceed: Callable[[], Any] = work.__next__
    while True:
        try:
            element = proceed()
        except StopIteration as end:
            finished = end.value
            break
        proceed = work.__next__
        if callable(element) or isinstance(element, Pause | Deferred):
            proceed = yield from awaited(work, element)
            continue
        if isinstance(element, Composed):
            element = yield from collected.composed(element)
        if element is not None:
            collected.add(element)
        yield
        if steps.turns != begun:
            yield from collected.encode()
    unfinished = finished.response if isinstance(finished, Mutated) else finished
    setattr(unfinished, collected.array, collected.elements)
    return finished


def awaited(work: Elements, step: Step) -> Generator[Step, Any, Callable[[], Any]]:
    """Let the runner do a step of a handler. Returns how the handler continues."""
    try:
        result = yield step
    except Exception as error:  # noqa: BLE001  the handler handles it
        return partial(work.throw, error)
    return partial(work.send, result)


class Collected:
    """The elements of one response: as objects, or as bytes if it is large.

    Args:
        response: The class of the response.
        array: The name of its array.
        version: The version of the request.
        broker: The broker that answers.
        limited: Whether ``response.max.bytes`` applies.
    """

    def __init__(
        self, response: type[Any], array: str, version: int, broker: Answering, limited: bool
    ) -> None:
        self.of = response, version, array
        self.array = array
        self.broker = broker
        self.left_bytes = broker.settings.response_max_bytes if limited else INT64_MAX
        self.elements: list[Any] = []
        self.write: Callable[[Any], bytes] | None = None
        """Encodes an element; None while elements are objects."""
        self.last: Any = None

    def encode(self) -> Generator[None, None, None]:
        """Encode the elements so far, a step each, and the following ones as they come.

        Does nothing if this version of the response has no such array: then it has fields for one element.
        """
        if self.write is not None:
            return
        self.write = element_writer(*self.of)  # type: ignore[arg-type]  # mypy doubts that classes are hashable
        if self.write is not None:
            administrative = self.of[0].API_KEY in ADMINISTRATIVE
            objects, self.elements = self.elements, EncodedResults() if administrative else EncodedElements()
            for each in objects:
                self.add(each)
                yield

    def add(self, element: Any) -> None:
        """Take an element; encode it if it is not the same object as the one before it.

        Raises:
            ApiError: POLICY_VIOLATION: the response becomes too large.
        """
        if self.write is None:
            self.elements.append(element)
            return
        if isinstance(self.elements, EncodedResults):
            self.elements.results.note(element)
        piece = self.elements[-1] if element is self.last else self.write(element)
        self.last = element
        self.elements.append(piece)
        self.left_bytes -= len(piece)
        if self.left_bytes < 0:
            raise self.too_large()

    def composed(self, composed: Composed) -> Generator[None, None, Any]:
        """Encode the parts of an element, a step each, unless they have been. Returns the element.

        Raises:
            ApiError: POLICY_VIOLATION: the response becomes too large.
        """
        if isinstance(getattr(composed.element, composed.array), EncodedElements):
            return composed.element
        write = element_writer(*self.of, composed.array)  # type: ignore[arg-type]  # as above
        assert write is not None
        pieces, left_bytes = EncodedElements(), self.left_bytes
        for part in composed.parts:
            pieces.append(write(part()))
            left_bytes -= len(pieces[-1])
            if left_bytes < 0:
                raise self.too_large()
            yield
        setattr(composed.element, composed.array, pieces)
        return composed.element

    def too_large(self) -> ApiError:
        """The refusal of a request for too much."""
        self.broker.large_responses_refused += 1
        return ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"The response would be larger than {self.broker.settings.response_max_bytes} bytes: "
            "ask for less in one request.",
        )
