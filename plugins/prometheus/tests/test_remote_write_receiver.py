"""The answers of a receiver: samples that are delivered, counted, or sent again."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from odradek.endpoints import Credentials, Misdirected, SecretKind, Unauthorized
from odradek.endpoints.http_client import HttpClient, HttpTarget
from odradek.plugin import Retry
from odradek_prometheus.families import Family, FamilyType
from odradek_prometheus.remote_write.answers import Reason
from odradek_prometheus.remote_write.receiver import Counts, Receiver
from odradek_prometheus.remote_write.sample import Sample
from support.otlp_collector import Collector, Exchange, collecting
from support.remote_write_receiver import StoringReceiver, answering, written

SENDS = Family("sends_total", "sends.total", FamilyType.COUNTER, "", "Sends.")
NOW_MS = 1_795_000_000_000
Mood = Callable[[Exchange], None]


def sample(series: int, time_ms: int = NOW_MS, value: float = 1.0) -> Sample:
    return Sample("sends_total", (("series", str(series)),), SENDS, time_ms, struct.pack("<d", value))


def sent(
    mood: Mood,
    *samples: Sample,
    protocol: str = "auto",
    files: dict[SecretKind, Path] | None = None,
    path: str = "",
) -> Counts:
    """The counts after samples were sent."""
    with collecting() as collector:
        collector.mood = mood
        return asyncio.run(
            write(collector, [samples or (sample(1),)], protocol, Credentials({}, files or {}), path)
        )


async def write(
    collector: Collector,
    batches: Sequence[Sequence[Sample]],
    protocol: str,
    credentials: Credentials,
    path: str = "",
) -> Counts:
    client = HttpClient(HttpTarget(url=f"{collector.url}/{path}", secure=False, timeout_ms=60_000), {})
    receiver = Receiver(client, credentials, protocol)
    await client.open()
    try:
        for batch in batches:
            await receiver.write(batch)
    finally:
        await client.close()
    return receiver.counts


def test_a_batch_is_one_request() -> None:
    receiver = StoringReceiver()

    counts = sent(receiver, *map(sample, range(1_000)))

    assert receiver.requests == [("2.0", 1_000)]
    assert (counts.requests, counts.samples, counts.rejected) == (1, 1_000, {})
    assert counts.sent_bytes < counts.raw_bytes
    (headers,) = receiver.headers
    assert headers["content-type"] == "application/x-protobuf;proto=io.prometheus.write.v2.Request"
    assert headers["content-encoding"] == "snappy"
    assert headers["x-prometheus-remote-write-version"] == "2.0.0"


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_receiver_that_cannot_now_is_asked_again(status: int) -> None:
    with pytest.raises(Retry, match=f"HTTP {status}: not now") as caught:
        sent(answering(status, "not now", Retry_After="7"))

    assert caught.value.after_s == 7


@pytest.mark.parametrize("status", [401, 403])
def test_wrong_credentials_are_for_an_operator_to_mend(status: int) -> None:
    with pytest.raises(Unauthorized, match=f"HTTP {status}: who"):
        sent(answering(status, "who are you?"))


def test_renewed_credentials_are_used_at_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    accepting = StoringReceiver()

    def mood(exchange: Exchange) -> None:
        if exchange.headers["authorization"] == "Bearer new":
            accepting(exchange)
        else:
            exchange.body()
            token.write_text("new")
            exchange.answer(401)

    assert sent(mood, files={SecretKind.BEARER: token}).samples == 1


@pytest.mark.parametrize(
    ("status", "headers"), [(301, {"Location": "http://elsewhere/"}), (404, {}), (405, {})]
)
def test_a_wrong_address_is_for_an_operator_to_mend(status: int, headers: dict[str, str]) -> None:
    with pytest.raises(
        Misdirected, match=f"HTTP {status}.*{headers.get('Location', '')}.*correct the endpoint"
    ):
        sent(answering(status, **headers))


def test_a_web_page_is_not_a_receiver() -> None:
    with pytest.raises(Misdirected, match="HTTP 200"):
        sent(answering(200, "<html>", Content_Type="text/html"))


def test_no_receiver() -> None:
    with collecting() as collector:
        collector.down()
        with pytest.raises(Retry, match="Connect"):
            asyncio.run(write(collector, [[sample(1)]], "auto", Credentials({}, {})))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("out of order sample for series {}", Reason.OUT_OF_ORDER),
        ("duplicate sample for timestamp", Reason.DUPLICATE),
        ("too old sample", Reason.TOO_OLD),
        ("out of bounds", Reason.TOO_OLD),
        ("timestamp is too far in the future", Reason.TOO_FAR_AHEAD),
        ("the sample was too far in future (err-mimir-too-far-in-future)", Reason.TOO_FAR_AHEAD),
        ("invalid labels for series, duplicated label a", Reason.LABELS),
        ("no idea", Reason.OTHER),
        ("", Reason.OTHER),
    ],
)
def test_samples_that_the_receiver_never_stores_are_counted(text: str, reason: Reason) -> None:
    counts = sent(answering(400, text, **written(1)), sample(1), sample(2))

    assert (counts.requests, counts.samples, counts.rejected) == (1, 2, {reason: 1})


def test_each_sample_has_its_reason() -> None:
    text = "out of order sample for series a\nduplicate sample for timestamp for series b\n"

    counts = sent(answering(400, text, **written(0)), *map(sample, range(4)))

    assert counts.rejected == {Reason.OUT_OF_ORDER: 3, Reason.DUPLICATE: 1}


def test_another_refusal_is_final() -> None:
    assert sent(answering(422, "no")).rejected == {Reason.OTHER: 1}


def test_a_receiver_without_2_0_gets_1_0() -> None:
    receiver = StoringReceiver(takes_v2=False)

    with collecting() as collector:
        collector.mood = receiver
        batches = [[sample(1)], [sample(1, NOW_MS + 1, 2.0)]]
        counts = asyncio.run(write(collector, batches, "auto", Credentials({}, {})))

    assert receiver.values("sends_total") == [1.0, 2.0]
    assert receiver.requests == [("1.0", 1), ("1.0", 1)]
    assert [each["x-prometheus-remote-write-version"] for each in receiver.headers] == [
        "2.0.0",
        "0.1.0",
        "0.1.0",
    ]
    assert receiver.headers[1]["content-type"] == "application/x-protobuf"
    assert (counts.requests, counts.samples) == (3, 2)


def test_a_receiver_that_does_not_say_what_it_stored_gets_1_0() -> None:
    versions = []

    def mood(exchange: Exchange) -> None:
        exchange.body()
        versions.append(exchange.headers["x-prometheus-remote-write-version"])
        exchange.answer(204)

    assert sent(mood).samples == 1
    assert versions == ["2.0.0", "0.1.0"]


def test_only_2_0_is_a_wrong_address_where_it_is_unknown() -> None:
    with pytest.raises(Misdirected, match="does not take remote write"):
        sent(StoringReceiver(takes_v2=False), protocol="2.0")


def test_only_1_0() -> None:
    receiver = StoringReceiver()

    sent(receiver, protocol="1.0")

    assert receiver.requests == [("1.0", 1)]


def test_a_bad_sample_costs_no_other_with_1_0() -> None:
    receiver = StoringReceiver()

    with collecting() as collector:
        collector.mood = receiver
        late = [sample(each, NOW_MS - (each == 5), 2.0) for each in range(8, 0, -1)]
        batches = [[sample(5)], late]
        counts = asyncio.run(write(collector, batches, "1.0", Credentials({}, {})))

    assert counts.rejected == {Reason.OUT_OF_ORDER: 1}
    assert [receiver.values("sends_total", series=str(each)) for each in (1, 5, 8)] == [[2.0], [1.0], [2.0]]


def test_a_request_that_is_too_large_is_split() -> None:
    receiver = StoringReceiver()

    def mood(exchange: Exchange) -> None:
        if int(exchange.headers["content-length"]) > 400:
            exchange.body()
            exchange.answer(413)
        else:
            receiver(exchange)

    counts = sent(mood, *map(sample, range(100)))

    assert sum(series for _, series in receiver.requests) == 100
    assert counts.rejected == {}


def test_a_sample_that_is_too_large_is_counted() -> None:
    assert sent(answering(413)).rejected == {Reason.TOO_LARGE: 1}


def test_bad_requests_that_never_end_are_given_up() -> None:
    counts = sent(answering(400, "no"), *map(sample, range(1_000)), protocol="1.0")

    assert 60 <= counts.requests <= 66
    assert counts.rejected == {Reason.OTHER: 1_000}
