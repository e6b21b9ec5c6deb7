"""The division of a batch into requests."""

from __future__ import annotations

import random

from odradek.plugin import ClientTelemetryPayload, TelemetryRecord
from odradek.testing import request_context
from odradek_otlp.request_plan import requests_of

CONTEXT = request_context(client_id=None)


def record(instance: int, size_bytes: int = 10) -> TelemetryRecord:
    payload = ClientTelemetryPayload(instance.to_bytes(16), terminating=False, data=bytes(size_bytes))
    return TelemetryRecord(CONTEXT, 1_000, payload)


def test_a_small_batch_is_one_request() -> None:
    batch = [record(number) for number in range(40)]

    assert requests_of(batch, 4) == [batch]


def test_a_large_batch_is_as_many_requests_as_needed() -> None:
    batch = [record(number) for number in range(100)]

    assert [len(request) for request in requests_of(batch, 4)] == [34, 33, 33]
    assert [len(request) for request in requests_of(batch, 2)] == [50, 50]
    assert requests_of(batch, 1) == [batch]


def test_bytes_are_limited_too() -> None:
    batch = [record(number, 700_000) for number in range(3)]

    assert [len(request) for request in requests_of(batch, 9)] == [1, 1, 1]


def test_the_pushes_of_a_client_instance_stay_together_and_in_order() -> None:
    chance = random.Random(7)
    batch = [record(chance.randrange(20), chance.randrange(2_000)) for _ in range(500)]

    requests = requests_of(batch, 5)

    assert sorted(map(id, (each for request in requests for each in request))) == sorted(map(id, batch))
    places = {id(each): place for place, each in enumerate(batch)}
    for request in requests:
        order = [places[id(each)] for each in request]
        assert order == sorted(order)
    homes = [{each.payload.client_instance_id for each in request} for request in requests]
    assert sum(map(len, homes)) == len(set().union(*homes))


def test_the_pushes_of_one_client_are_one_request() -> None:
    batch = [record(7) for _ in range(200)]

    assert requests_of(batch, 4) == [batch]
