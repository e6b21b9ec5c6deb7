"""The prices of presets, and estimates, are the series that Prometheus gets of the same pushes."""

from __future__ import annotations

import dataclasses

import pytest
from contrib.docs.presets import CLIENTS, fullest, price

from odradek.findings.presets import EVERYTHING, PRESETS
from odradek_otlp.metrics_bytes import filtered
from odradek_prometheus.text_format import Format, Page
from support.exposed_clients import Exposed


def exposed_series(client: str, prefixes: tuple[str, ...]) -> int:
    """The samples of a page about a client that pushes only metrics with these prefixes."""
    record = fullest(client).record
    data = filtered(record.payload.data, tuple(each.encode() for each in prefixes))
    if not data:
        return 0
    record.payload = dataclasses.replace(record.payload, data=data)
    exposed = Exposed()
    exposed.deliver(record)
    clients = exposed.exposition.clients()
    text = b"".join(Page(clients, clients[0].received_ms, Format()).pieces()).decode()
    return sum("client_instance_id=" in line for line in text.splitlines())


@pytest.mark.parametrize("client", CLIENTS)
def test_the_price_of_a_preset_is_what_prometheus_gets(client: str) -> None:
    presets = [each for each in PRESETS.values() if EVERYTHING not in each.metrics]

    prices = {each.id: price(each, client).series for each in presets}

    assert prices == {each.id: exposed_series(client, each.metrics) for each in presets}
    assert any(prices.values())
