"""Which handler serves which API in which versions.

A handler is a function in ``broker/handlers/<api>.py``, named after the API, which `served` lists::

    @answers(HeartbeatRequest, HeartbeatResponse)
    def heartbeat(
        request: HeartbeatRequest, context: RequestContext, broker: Broker
    ) -> HeartbeatResponse: ...

It returns a response, or a `Deferred` of one, or None where the protocol has no answer (Produce with acks=0).
It refuses with `ApiError`. Any other exception is a bug: logged, and answered with UNKNOWN_SERVER_ERROR.

A handler whose work grows with its request or its response is a generator, and names the array of the
response that may become large (``each="groups"``). It yields the elements, or None after a few hundred
microseconds, and returns the response without them. A request that takes longer than a turn of the loop
continues in later turns, see `odradek.waiting.step_runner`; what is answered is encoded meanwhile, see
`odradek.broker.dispatch.response_elements`. Other requests run between two yields, so state that was looked
up before a yield may be gone after it. The generator is closed if the host stops. ::

    @answers(DescribeGroupsRequest, DescribeGroupsResponse, each="groups", droppable=True)
    def describe_groups(
        request: DescribeGroupsRequest, context: RequestContext, broker: Broker
    ) -> Generator[DescribedGroup, None, DescribeGroupsResponse]:
        for group_id in request.groups:
            yield describe(group_id, broker)
        return DescribeGroupsResponse()

A handler that needs it only sometimes, or cannot say beforehand whether it changes something, returns
``gathered(generator, ...)``; Produce and Fetch, whose answers have two levels, ``broker.steps.answer``.
"""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from odradek.bounds.large_list import LargeList
from odradek.broker.answering import Answering
from odradek.broker.dispatch.administration import SUBJECTS, audited
from odradek.broker.dispatch.refusals import Refusal, refusal_of
from odradek.broker.dispatch.response_elements import gathered
from odradek.broker.dispatch.served import SERVED
from odradek.broker.dispatch.throttling import Charge, charge_time
from odradek.plugin.context import RequestContext
from odradek.wire.api_names import module_name
from odradek.wire.codec import SteppedRead, reader, stepped_reader, takes_steps, writer
from odradek.wire.declared import response_of
from odradek.wire.parts import Parts
from odradek.wire.types import Versions

API_VERSIONS_KEY = 18

Handler = Callable[[Any, RequestContext, Any], Any]
H = TypeVar("H", bound=Callable[..., Any])


class CloseConnection(Exception):
    """Refuse a request where the protocol has no answer: the connection is closed."""


@dataclass(frozen=True, slots=True)
class Route:
    """How one API is served."""

    request: type[Any]
    response: type[Any]
    handler: Handler
    refusal: Refusal
    versions: Versions
    """The versions that are parsed. `SERVED` may have more: clients infer features from those listed."""
    charge: Charge
    """How a request is charged while quotas are set."""

    def at(self, version: int) -> CompiledRoute:
        key = self.request.API_KEY
        return CompiledRoute(
            api_key=key,
            version=version,
            request=self.request,
            handler=self.handler,
            refusal=self.refusal,
            read=reader(self.request, version),
            write=writer(self.response, version),
            flexible_request=version in self.request.FLEXIBLE,
            # clients parse this response before they know anything: its header is always v0 (KIP-511)
            flexible_response=version in self.response.FLEXIBLE and key != API_VERSIONS_KEY,
            charge=self.charge,
            takes_steps=takes_steps(self.request, version),
            tells_throttle="throttle_time_ms" in self.response.__dataclass_fields__,
        )


ROUTES: dict[int, Route] = {}
"""By API key. Filled by importing the handlers; the only table of the host that grows."""


def answers(
    request: type[Any],
    *,
    refusal: Refusal | None = None,
    refuses: str | None = None,
    charge: Charge = charge_time,
    droppable: bool = False,
    each: str | None = None,
    **refused: Any,
) -> Callable[[H], H]:
    """Register a handler.

    Args:
        request: The request's declaration. Those of its ``VERSIONS`` are parsed that `SERVED` lists.
        refusal: Makes the response for an `ApiError`. The default refuses at the top; a response that has no
            error code there in every version needs its own, or ``refuses``.
        refuses: The array of the request whose elements are refused one by one, in ``each``.
        charge: What a request costs while quotas are set, see ``broker/dispatch/throttling.py``.
        droppable: The handler is a generator that changes nothing: it ends when the connection is lost.
        each: The handler is a generator that yields the elements of this array of the response.
        refused: Other fields of a refusal: of its elements with ``refuses``, else at its top.
    """
    response = response_of(request)

    def register(handler: H) -> H:
        listed, declared = SERVED[request.API_KEY], request.VERSIONS
        begin = handler if each is None else in_steps(handler, response, each, droppable)
        ROUTES[request.API_KEY] = Route(
            request,
            response,
            audited(begin) if request in SUBJECTS else begin,
            refusal or refusal_of(request, refuses, each, **refused),
            Versions(max(listed.first, declared.first), min(listed.last, declared.last)),
            charge,
        )
        return handler

    return register


def in_steps(handler: Handler, response: type[Any], each: str, droppable: bool) -> Handler:
    """A handler that runs a generator of elements in steps."""

    @wraps(handler)
    def begin(request: Any, context: RequestContext, broker: Answering) -> Any:
        work = handler(request, context, broker)
        return gathered(work, response, each, context.api_version, broker, droppable=droppable)

    return begin


class Routes(Mapping[int, Route]):
    """The routes of some APIs, by key. Each handler is imported when its route is asked for.

    Args:
        requests: The classes of their requests; none for all APIs that are served.
    """

    def __init__(self, *requests: type[Any]) -> None:
        self.served = frozenset(each.API_KEY for each in requests) or SERVED.keys()

    def __getitem__(self, api_key: int) -> Route:
        if api_key not in self.served:
            raise KeyError(api_key)
        if api_key not in ROUTES:
            importlib.import_module(f"odradek.broker.handlers.{module_name(api_key)}")
        return ROUTES[api_key]

    def __iter__(self) -> Iterator[int]:
        return iter(self.served)

    def __len__(self) -> int:
        return len(self.served)


SHORT_PREFIX = struct.Struct(">ii")  # frame length, correlation id (response header v0)
TAGGED_PREFIX = struct.Struct(">iib")  # the same and an empty tag section (response header v1)
pack_short, pack_tagged = SHORT_PREFIX.pack, TAGGED_PREFIX.pack


@dataclass(slots=True)
class CompiledRoute:
    """A route at one version, with everything looked up."""

    api_key: int
    version: int
    request: type[Any]
    handler: Handler
    refusal: Refusal
    read: Callable[[Any, int], tuple[Any, int]]
    write: Callable[[Any], bytes | Parts]
    flexible_request: bool
    flexible_response: bool
    charge: Charge
    takes_steps: bool
    """A large request takes long to read."""
    tells_throttle: bool
    """The response has a ``throttle_time_ms``."""

    def read_in_steps(
        self, frame: bytes | memoryview, body: int, large: Callable[[], LargeList]
    ) -> SteppedRead:
        """Read a large request. At its first step, its reader may have to be compiled.

        Args:
            frame: The frame with the request.
            body: Where the header ends.
            large: Makes the lists of large arrays.
        """
        yield
        return (yield from stepped_reader(self.request, self.version)(frame, body, large))

    def frame(self, correlation_id: int, response: Any, body: bytes | Parts | None = None) -> bytes | Parts:
        """The response as bytes or parts, with its length; ``body`` if it is already encoded."""
        if body is None:
            body = self.write(response)
        if self.flexible_response:
            return pack_tagged(len(body) + 5, correlation_id, 0) + body
        return pack_short(len(body) + 4, correlation_id) + body
