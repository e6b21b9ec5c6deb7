"""The dispatcher: headers, versions, bugs, and the refusal of every route in every version."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from odradek.broker import handlers
from odradek.broker.dispatch import served
from odradek.broker.dispatch.dispatcher import Answer, Dispatcher
from odradek.broker.dispatch.routes import CloseConnection, Route, Routes, answers
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.api_names import module_name
from odradek.wire.codec import decode, encode
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.header import (
    RequestHeader,
    flexible_request_header,
    flexible_response_header,
    read_response_header,
    request_header,
)
from odradek.wire.layout import ArrayOf, Field, Kind, StructOf, layout
from odradek.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.wire.messages.describe_cluster import DescribeClusterRequest
from odradek.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.wire.messages.list_offsets import ListOffsetsRequest
from odradek.wire.messages.metadata import MetadataRequest
from odradek.wire.messages.produce import ProduceRequest
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from odradek.wire.types import between
from random_messages import MessageMaker
from support.broker import make_broker, make_connection
from support.offenders import offenders

ROUTES = Routes()
CORRELATION_ID = 77
SERVED = [
    (key, version)
    for key, route in sorted(ROUTES.items())
    for version in range(route.versions.first, route.versions.last + 1)
]
BUGS = [
    *((*each, RuntimeError) for each in SERVED),
    *((*SERVED[0], bug) for bug in (KeyError, RecursionError, MemoryError)),
]
TELEMETRY = (71, 72)
UNSUPPORTED_API_VERSIONS = bytes.fromhex("00000010 0000004d 0023 00000001 0012 0000 0005")
"""Length, correlation id, UNSUPPORTED_VERSION and one entry: key 18, versions 0 to 4."""


class OneOfEach(MessageMaker):
    """Requests in which every array has an element, so that a refusal needs an answer for each."""

    def field(self, field: Field) -> Any:
        return self.value(field.kind, field.name)

    def count(self, element: Kind) -> int:
        return 1


def test_every_array_of_a_generated_request_has_an_element() -> None:
    shape = layout(MetadataRequest, 13)

    request = OneOfEach(random.Random(1)).message(MetadataRequest, 13)

    arrays = [field.name for field in shape.fields if isinstance(field.kind, ArrayOf)]
    assert isinstance(shape, StructOf)
    assert [len(getattr(request, name)) for name in arrays] == [1]


def raising(error: BaseException) -> Any:
    def handler(*_: object) -> None:
        raise error

    return handler


broker = cache(make_broker)  # one is enough: the handlers of the tests change nothing in it


def dispatcher_with(key: int, handler: Any) -> Dispatcher:
    """A host in which ``handler`` answers one API."""
    routes = dict(ROUTES)
    routes[key] = dataclasses.replace(routes[key], handler=handler)
    return Dispatcher(broker(), routes)


def frame_of(request: Any, version: int, client_id: str | None = "test") -> bytes:
    header = RequestHeader(request.API_KEY, version, CORRELATION_ID, client_id)
    return request_header(header, flexible_request_header(request, version)) + encode(request, version)


def written(answer: Answer) -> bytes:
    """The frame of an immediate answer."""
    frames: list[bytes] = []
    if isinstance(answer, Deferred):
        answer.when_done(frames.append)
    elif isinstance(answer, bytes):
        frames.append(answer)
    (frame,) = frames
    return frame


def response_of(frame: bytes, response: type[Any], version: int) -> Any:
    correlation_id, start = read_response_header(frame, 4, flexible_response_header(response, version))
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    assert correlation_id == CORRELATION_ID
    return decode(response, version, frame, start)


def error_codes(message: Any) -> Iterator[int]:
    """All error codes of a response, at any depth."""
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        if field.name.endswith("error_code"):
            yield value
        for item in value if isinstance(value, list) else [value]:
            if dataclasses.is_dataclass(item):
                yield from error_codes(item)


def answers_unknown_server_error(key: int, version: int, bug: type[Exception]) -> None:
    route = ROUTES[key]
    dispatcher = dispatcher_with(key, raising(bug()))
    request = OneOfEach(random.Random(version)).message(route.request, version)
    if key == ProduceRequest.API_KEY:
        request.acks = 1

    frame = written(dispatcher.answer(frame_of(request, version), 0, make_connection()))

    codes = set(error_codes(response_of(frame, route.response, version)))
    expected = ErrorCode.INVALID_REQUEST if key in TELEMETRY else ErrorCode.UNKNOWN_SERVER_ERROR
    # NONE is allowed if the version has an error field that it does not use
    assert expected in codes
    assert codes <= {expected, ErrorCode.NONE}
    assert dispatcher.unexpected_errors == 1


def test_a_bug_of_any_handler_is_an_unknown_server_error() -> None:
    assert offenders(answers_unknown_server_error, BUGS) == {}


def refuses_with_an_error_code(key: int, version: int) -> None:
    route = ROUTES[key]
    dispatcher = dispatcher_with(key, raising(ApiError(ErrorCode.POLICY_VIOLATION, "no")))
    request = OneOfEach(random.Random(version)).message(route.request, version)
    if key == ProduceRequest.API_KEY:
        request.acks = 1

    frame = written(dispatcher.answer(frame_of(request, version), 0, make_connection()))

    codes = set(error_codes(response_of(frame, route.response, version)))
    assert (ErrorCode.INVALID_REQUEST if key in TELEMETRY else ErrorCode.POLICY_VIOLATION) in codes
    assert dispatcher.unexpected_errors == 0


def test_every_route_can_refuse_with_an_error_code() -> None:
    assert offenders(refuses_with_an_error_code, SERVED) == {}


def answers_instead_of_what_cannot_be_encoded(key: int, version: int) -> None:
    route = ROUTES[key]
    dispatcher = dispatcher_with(key, lambda *_: object())
    request = OneOfEach(random.Random(version)).message(route.request, version)
    if key == ProduceRequest.API_KEY:
        request.acks = 1

    frame = written(dispatcher.answer(frame_of(request, version), 0, make_connection()))

    assert any(error_codes(response_of(frame, route.response, version)))
    assert dispatcher.unexpected_errors == 1


def test_a_response_that_cannot_be_encoded_is_a_bug_too() -> None:
    assert offenders(answers_instead_of_what_cannot_be_encoded, SERVED) == {}


def test_the_host_continues_after_a_bug() -> None:
    dispatcher = dispatcher_with(InitProducerIdRequest.API_KEY, raising(RuntimeError()))
    connection = make_connection()
    dispatcher.answer(frame_of(InitProducerIdRequest(), 4), 0, connection)

    frame = written(dispatcher.answer(frame_of(DescribeClusterRequest(), 0), 0, connection))

    assert len(frame) > 4


def test_a_bug_in_a_deferred_answer_is_an_unknown_server_error() -> None:
    deferred = Deferred[Any]()
    dispatcher = dispatcher_with(InitProducerIdRequest.API_KEY, lambda *_: deferred)
    answer = dispatcher.answer(frame_of(InitProducerIdRequest(), 4), 0, make_connection())

    deferred.complete_by(raising(ZeroDivisionError()))

    response = response_of(written(answer), InitProducerIdResponse, 4)
    assert (response.error_code, response.producer_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, -1)
    assert dispatcher.unexpected_errors == 1


def test_a_deferred_answer_can_refuse_with_an_error_code() -> None:
    deferred = Deferred[Any]()
    dispatcher = dispatcher_with(InitProducerIdRequest.API_KEY, lambda *_: deferred)
    answer = dispatcher.answer(frame_of(InitProducerIdRequest(), 4), 0, make_connection())

    deferred.complete_by(raising(ApiError(ErrorCode.POLICY_VIOLATION)))

    assert response_of(written(answer), InitProducerIdResponse, 4).error_code == ErrorCode.POLICY_VIOLATION
    assert dispatcher.unexpected_errors == 0


def test_a_deferred_request_without_an_answer_has_no_frame() -> None:
    deferred = Deferred[Any]()
    dispatcher = dispatcher_with(InitProducerIdRequest.API_KEY, lambda *_: deferred)
    answer = dispatcher.answer(frame_of(InitProducerIdRequest(), 4), 0, make_connection())
    frames: list[bytes | None] = []
    assert isinstance(answer, Deferred)
    answer.when_done(frames.append)

    deferred.complete(None)

    assert frames == [None]


@pytest.mark.parametrize("error", [CloseConnection("why"), ZeroDivisionError()])
def test_a_deferred_answer_without_a_refusal_closes_only_its_connection(error: Exception) -> None:
    deferred, key = Deferred[Any](), InitProducerIdRequest.API_KEY
    dispatcher = dispatcher_with(key, lambda *_: deferred)
    route = dataclasses.replace(dispatcher.routes[key], refusal=raising(error))
    dispatcher.routes = {**dispatcher.routes, key: route}
    answer = dispatcher.answer(frame_of(InitProducerIdRequest(), 4), 0, make_connection())
    frames: list[bytes] = []
    assert isinstance(answer, Deferred)
    answer.when_done(frames.append)

    deferred.complete(ApiError(ErrorCode.POLICY_VIOLATION))

    assert frames == [b""]


@pytest.mark.parametrize("error", [CloseConnection("why"), WireError("why")])
def test_a_handler_may_close_the_connection(error: Exception) -> None:
    dispatcher = dispatcher_with(InitProducerIdRequest.API_KEY, raising(error))

    with pytest.raises(type(error), match="why"):
        dispatcher.answer(frame_of(InitProducerIdRequest(), 4), 0, make_connection())

    assert dispatcher.unexpected_errors == 0


def test_a_handler_may_have_no_answer() -> None:
    dispatcher = dispatcher_with(InitProducerIdRequest.API_KEY, lambda *_: None)

    answer = dispatcher.answer(frame_of(InitProducerIdRequest(), 4), 0, make_connection())

    assert answer is None


@pytest.mark.parametrize("size", range(8))
def test_a_frame_without_the_fixed_fields_closes_the_connection(size: int) -> None:
    dispatcher = Dispatcher(make_broker(), ROUTES)

    with pytest.raises(WireError, match=f"a request of {size} bytes has no header"):
        dispatcher.answer(frame_of(MetadataRequest(), 9)[:size], 0, make_connection())


def test_the_offset_into_the_frame_is_respected() -> None:
    dispatcher = Dispatcher(make_broker(), ROUTES)
    frame = b"\0\0\0\x20" + frame_of(DescribeClusterRequest(), 0)

    answers_of_both = [
        dispatcher.answer(frame, 4, make_connection()),
        dispatcher.answer(memoryview(frame)[4:], 0, make_connection()),
    ]

    assert answers_of_both[0] == answers_of_both[1]
    assert isinstance(answers_of_both[0], bytes)


@pytest.mark.parametrize(
    "request_type", [MetadataRequest, ProduceRequest, ListOffsetsRequest, PushTelemetryRequest]
)
def test_every_truncation_closes_the_connection(request_type: type[Any]) -> None:
    dispatcher = Dispatcher(make_broker(), ROUTES)
    version = request_type.VERSIONS.last
    frame = frame_of(OneOfEach(random.Random(3)).message(request_type, version), version)

    for size in range(len(frame)):
        with pytest.raises(WireError):
            dispatcher.answer(frame[:size], 0, make_connection())

    assert dispatcher.unexpected_errors == 0


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ("7fff 0000", "unknown api key 32767"),
        ("ffff 0000", "unknown api key -1"),
        ("0003 ffff", "unsupported version .* of api key 3"),
        ("0003 7fff", "unsupported version 32767 of api key 3"),
        ("0000 0002", "unsupported version 2 of api key 0"),
        ("0016 0006", "unsupported version 6 of api key 22"),
    ],
)
def test_an_unserved_api_or_version_closes_the_connection(head: str, why: str) -> None:
    dispatcher = Dispatcher(make_broker(), ROUTES)
    frame = bytes.fromhex(head + "0000004d ffff 00") + bytes(50)

    with pytest.raises(WireError, match=why):
        dispatcher.answer(frame, 0, make_connection())

    assert not dispatcher.compiled


@pytest.mark.parametrize("client_id", [None, "", "ä", "x" * 1_024, "ä" * 1_024])
def test_any_string_and_null_is_a_client_id(client_id: str | None) -> None:
    seen: list[str | None] = []

    def handler(_request: object, context: Any, _broker: object) -> None:
        seen.append(context.client_id)

    dispatcher = dispatcher_with(DescribeClusterRequest.API_KEY, handler)

    dispatcher.answer(frame_of(DescribeClusterRequest(), 0, client_id), 0, make_connection())

    assert seen == [client_id]


@pytest.mark.parametrize("version", [6, 99, 0x7FFF, -1])
@pytest.mark.parametrize(
    "rest", ["ffff 00", "0002 fffe 00", "0000", "0003 616263 00 0278 0279 00", "7fff", "ff" * 40]
)
def test_api_versions_of_an_unknown_version_is_answered_whatever_its_body(version: int, rest: str) -> None:
    dispatcher = Dispatcher(make_broker(), ROUTES)
    head = ApiVersionsRequest.API_KEY.to_bytes(2) + version.to_bytes(2, signed=True)

    answer = dispatcher.answer(head + bytes.fromhex("0000004d" + rest), 0, make_connection())

    assert answer == UNSUPPORTED_API_VERSIONS


def test_the_same_connection_can_use_a_lower_version() -> None:
    dispatcher = Dispatcher(make_broker(), ROUTES)
    connection = make_connection()
    dispatcher.answer(bytes.fromhex("0012 0063 0000004d ffff 00"), 0, connection)

    answer = dispatcher.answer(frame_of(ApiVersionsRequest(), 0), 0, connection)

    assert response_of(written(answer), ApiVersionsResponse, 0).error_code == ErrorCode.NONE


def test_a_handler_gets_the_connection_and_the_time() -> None:
    seen: list[Any] = []
    dispatcher = dispatcher_with(DescribeClusterRequest.API_KEY, lambda _, context, __: seen.append(context))
    connection = make_connection()

    dispatcher.answer(frame_of(DescribeClusterRequest(), 1), 0, connection)

    (context,) = seen
    assert context.connection is connection
    assert (context.api_key, context.api_version, context.correlation_id) == (60, 1, CORRELATION_ID)
    assert context.received_ms == dispatcher.broker.clock.now_ms()


def test_a_route_parses_the_declared_versions_that_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    routes: dict[int, Route] = {}
    monkeypatch.setattr("odradek.broker.dispatch.routes.ROUTES", routes)

    @answers(ProduceRequest, refusal=lambda *_: None)
    def produce(*_: object) -> None: ...

    @answers(InitProducerIdRequest)
    def init_producer_id(*_: object) -> None: ...

    assert [routes[key].versions for key in (0, InitProducerIdRequest.API_KEY)] == [
        between(3, 13),
        between(0, 5),
    ]
    assert routes[InitProducerIdRequest.API_KEY].handler is init_producer_id


def test_the_handlers_are_those_of_the_served_apis() -> None:
    files = {path.stem for path in Path(str(handlers.__path__[0])).glob("[!_]*.py")}

    assert files == {module_name(key) for key in served.SERVED}
    assert all(key == route.request.API_KEY for key, route in ROUTES.items())


def test_every_handler_is_named_after_its_file() -> None:
    names = {route.handler.__name__: route.handler.__module__ for route in ROUTES.values()}

    assert names == {name: f"odradek.broker.handlers.{name}" for name in names}
