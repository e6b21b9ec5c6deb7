"""Refused pushes that are stored all the same: which, how often, and with which mark."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from conformance.telemetry_broker import DATA, DEFAULT_PROPERTIES, TelemetryBroker, otlp
from odradek.plugin import Origin, TelemetryRecord
from odradek.telemetry.accepted_push import AcceptedPush
from odradek.telemetry.client_metrics_manager import ClientMetricsManager
from odradek.telemetry.kept_pushes import LEAST_MEMORY_MS, MOST_IN_A_ROW, Loss, blame
from odradek.temporality import Engine
from odradek.topic import decode_record, encode_headers, record_key
from odradek.waiting.deferred import Deferred
from odradek.wire.compression import Codec, TooLarge, compress
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from support.delta_clients import d, metrics_data

NONE, INVALID_REQUEST = ErrorCode.NONE, ErrorCode.INVALID_REQUEST
UNKNOWN, EARLY, LARGE = (
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    ErrorCode.TELEMETRY_TOO_LARGE,
)
Counts = dict[ErrorCode, int]
INTERVAL_MS = 30_000
PAYLOADS = [otlp(f"m{number}") for number in range(50)]
LARGE_PAYLOAD = otlp("m" * 200)


@dataclass
class Sink:
    """Stores pushes, or refuses them."""

    works: bool = True
    pushes: list[AcceptedPush] = field(default_factory=list)

    def take(self, push: AcceptedPush) -> bool | Deferred[bool]:
        if self.works:
            self.pushes.append(push)
        return self.works


class Stage:
    """A broker with a log, and one client with a subscription."""

    def __init__(self, **settings: int) -> None:
        self.broker = TelemetryBroker(**settings)  # type: ignore[arg-type]
        self.sink = Sink()
        self.broker.sink = self.sink
        self.broker.update("sub-1", DEFAULT_PROPERTIES)
        self.told = self.broker.get()

    @property
    def manager(self) -> ClientMetricsManager:
        return self.broker.manager

    def push(
        self, payload: bytes = DATA, told: GetTelemetrySubscriptionsResponse | None = None, **more: int
    ) -> ErrorCode:
        """Push, by default with the subscription that the client has."""
        code = self.broker.push(told or self.told, payload, **more)  # type: ignore[arg-type]
        assert self.manager.accounts.balanced
        return code

    def change(self) -> None:
        """Change the subscription: the client does not know it yet."""
        self.broker.update(
            "sub-1", DEFAULT_PROPERTIES | {"metrics": f"m{self.manager.subscriptions.version}"}
        )

    def takes(self) -> None:
        """Let the client ask for its subscription."""
        self.told = self.broker.get(self.told.client_instance_id)

    def wait(self, ms: int = INTERVAL_MS) -> None:
        """Let time pass."""
        self.broker.clock.advance(ms)

    @property
    def stored(self) -> list[tuple[bytes, int]]:
        """Payloads and their marks."""
        return [(push.payload.data, push.payload.refused) for push in self.sink.pushes]

    @property
    def accounts(
        self,
    ) -> tuple[dict[ErrorCode, int], dict[ErrorCode, int], dict[tuple[ErrorCode, Loss], int]]:
        """Kept, rejected and lost."""
        return self.manager.accounts.kept, self.manager.accounts.rejected, self.manager.kept.lost


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_push_with_an_outdated_subscription_is_refused_and_stored(stage: Stage) -> None:
    stage.change()

    code = stage.push()

    assert code is UNKNOWN
    assert stage.stored == [(DATA, 117)]
    assert stage.broker.receiver.payloads == [stage.sink.pushes[0].payload]
    assert stage.accounts == ({UNKNOWN: 1}, {}, {})


def test_the_client_goes_on_as_with_kafka(stage: Stage) -> None:
    stage.change()
    stage.push()

    stage.takes()
    stage.wait()

    assert stage.push(PAYLOADS[1]) is NONE
    assert stage.stored == [(DATA, 117), (PAYLOADS[1], 0)]
    assert stage.manager.kept.clients == {}


@pytest.mark.parametrize("first", [DATA, b""], ids=["with metrics", "without metrics"])
def test_a_throttled_push_that_follows_the_change_is_stored(stage: Stage, first: bytes) -> None:
    stage.change()
    stage.push(first)
    stage.takes()
    stage.wait(INTERVAL_MS // 2)

    codes = [stage.push(PAYLOADS[1]), stage.push(PAYLOADS[2])]
    stage.wait()

    assert codes == [EARLY, EARLY]
    assert stage.push(PAYLOADS[3]) is NONE
    stored = [(DATA, 117), (PAYLOADS[1], 89), (PAYLOADS[3], 0)]
    assert stage.stored == stored[0 if first else 1 :]
    assert stage.manager.kept.lost == {(EARLY, Loss.OFF): 1}


def test_the_record_carries_the_mark_and_the_subscription_of_the_push(stage: Stage) -> None:
    outdated = stage.told.subscription_id
    stage.change()
    stage.push(terminating=True)

    (push,) = stage.sink.pushes
    record = copied(push)

    assert (record.payload.refused, record.subscription_id) == (117, outdated)
    assert (record.payload.terminating, record.payload.data) == (True, DATA)
    assert record.push_interval_ms == INTERVAL_MS


def test_an_accepted_push_has_no_mark(stage: Stage) -> None:
    stage.push()

    (push,) = stage.sink.pushes

    assert copied(push).payload.refused == 0
    assert [name for name, _ in encode_headers(push.record()) if name == "refused"] == []


def copied(push: AcceptedPush) -> TelemetryRecord:
    """The record as a reader of the topic gets it."""
    record = push.record()
    key = record_key(record.payload.client_instance_id)
    return decode_record(key, record.payload.data, encode_headers(record))


# Never twice


def test_a_push_that_is_sent_again_with_the_right_subscription_is_not_stored_again(stage: Stage) -> None:
    stage.change()
    stage.push()
    stage.takes()
    stage.wait()

    codes = [stage.push(), stage.push(), stage.push(PAYLOADS[1])]

    assert codes == [NONE, EARLY, EARLY]
    assert stage.stored == [(DATA, 117)]
    assert stage.manager.accounts.repeated == 1


def test_a_push_that_is_refused_twice_is_stored_once(stage: Stage) -> None:
    stage.change()
    stage.push()
    stage.change()

    code = stage.push()

    assert code is UNKNOWN
    assert stage.stored == [(DATA, 117)]
    assert stage.accounts == ({UNKNOWN: 1}, {UNKNOWN: 1}, {})


def test_a_push_that_could_not_be_stored_is_lost_and_may_come_again(stage: Stage) -> None:
    stage.sink.works = False
    stage.change()
    refused = stage.push()
    stage.sink.works = True
    stage.takes()
    stage.wait()

    code = stage.push()

    assert (refused, code) == (UNKNOWN, NONE)
    assert stage.stored == [(DATA, 0)]
    assert stage.accounts == ({}, {UNKNOWN: 1}, {(UNKNOWN, Loss.NOT_STORED): 1})


def test_an_accepted_push_that_could_not_be_stored_is_counted_as_lost(stage: Stage) -> None:
    stage.sink.works = False

    code = stage.push()

    assert code is EARLY
    assert stage.accounts == ({}, {EARLY: 1}, {(EARLY, Loss.NOT_STORED): 1})


# Which pushes


@pytest.mark.parametrize(
    ("payload", "codec"),
    [(b"\xff\xff", 0), (DATA, Codec.ZSTD), (DATA, 7), (LARGE_PAYLOAD, 0)],
    ids=["not OTLP", "damaged", "unknown codec", "larger than telemetry.max.bytes"],
)
def test_an_unsound_push_is_refused_as_before_and_lost(stage: Stage, payload: bytes, codec: int) -> None:
    stage.change()

    code = stage.push(payload, codec=codec)

    assert code is UNKNOWN
    assert stage.stored == []
    assert stage.broker.known(stage.told).last_known_error is UNKNOWN
    assert stage.accounts == ({}, {UNKNOWN: 1}, {(UNKNOWN, Loss.UNSOUND): 1})


def test_a_refused_push_without_metrics_is_no_loss(stage: Stage) -> None:
    stage.change()

    stage.push(b"")

    assert stage.accounts == ({}, {UNKNOWN: 1}, {})


def test_pushes_are_not_kept_if_the_configuration_says_so() -> None:
    stage = Stage(keep_unknown_subscription=False)
    stage.change()

    stage.push()

    assert stage.stored == []
    assert stage.accounts == ({}, {UNKNOWN: 1}, {(UNKNOWN, Loss.OFF): 1})


def test_pushes_are_not_kept_while_the_host_wants_none(stage: Stage) -> None:
    stage.manager.subscriptions.suspend(True)

    stage.push()

    assert stage.stored == []
    assert stage.accounts == ({}, {UNKNOWN: 1}, {(UNKNOWN, Loss.SILENCED): 1})


def test_a_push_after_the_goodbye_is_not_kept(stage: Stage) -> None:
    stage.push(terminating=True)
    stage.wait()

    code = stage.push(PAYLOADS[1])

    assert code is INVALID_REQUEST
    assert stage.accounts == ({}, {INVALID_REQUEST: 1}, {})


def test_a_large_payload_is_opened_by_a_worker_and_answered_after_it() -> None:
    stage = Stage(inline_bytes=10, telemetry_max_bytes=100)
    stage.change()
    payload = otlp("m" * 50)

    pending = stage.broker.pending_push(stage.told, compress(Codec.ZSTD, payload), codec=Codec.ZSTD)
    response = stage.broker.finish(pending)

    assert response.error_code == UNKNOWN
    assert stage.stored == [(payload, 117)]
    assert stage.manager.accounts.balanced


# Bounds


def test_a_client_that_never_takes_its_subscription_is_kept_within_its_interval(stage: Stage) -> None:
    stage.change()

    for payload in PAYLOADS[:5]:
        # On a new connection the host does not remember the last push.
        stage.manager.client_instances.close()
        stage.push(payload)
        stage.wait(INTERVAL_MS // 4)

    assert [data for data, _ in stage.stored] == [PAYLOADS[0], PAYLOADS[2], PAYLOADS[4]]
    assert sum(stage.manager.kept.lost.values()) == 2


def test_a_client_that_never_takes_its_subscription_is_not_kept_for_ever(stage: Stage) -> None:
    stage.change()

    for payload in PAYLOADS[: MOST_IN_A_ROW + 3]:
        stage.push(payload)
        stage.wait()

    assert len(stage.stored) == MOST_IN_A_ROW
    assert stage.manager.kept.lost == {(UNKNOWN, Loss.STUBBORN): 3}


def test_an_accepted_push_ends_the_row(stage: Stage) -> None:
    for number in range(MOST_IN_A_ROW + 3):
        stage.change()
        stage.push(PAYLOADS[2 * number])
        stage.takes()
        stage.wait()
        stage.push(PAYLOADS[2 * number + 1])
        stage.wait()

    assert len(stage.stored) == 2 * (MOST_IN_A_ROW + 3)
    assert stage.manager.kept.lost == {}


def test_no_more_clients_are_remembered_than_instances_until_their_time_is_over() -> None:
    stage = Stage(cache_size=2)
    clients = [stage.broker.get() for _ in range(4)]
    stage.change()

    for told in clients[:3]:
        stage.push(told=told)
    stage.wait(LEAST_MEMORY_MS)
    stage.push(told=clients[3])

    assert len(stage.stored) == 3
    assert stage.manager.kept.lost == {(UNKNOWN, Loss.CLIENTS): 1}
    assert len(stage.manager.kept.clients) <= 2


# Totals: rows 43 and 44 of the scenarios, with what the host has kept


def counted(value: float, start: int, end: int) -> bytes:
    """A push with a delta over some seconds."""
    return metrics_data([d(value, start, end)], {}).SerializeToString()


def total_of(stage: Stage) -> tuple[float, int]:
    """The total of what is stored, and the number of gaps."""
    engine = Engine()
    for offset, push in enumerate(stage.sink.pushes):
        record = copied(push)
        record.position = Origin("topic", 0, offset)
        engine.convert(record)
    (series,) = engine.series(stage.told.client_instance_id)
    return series.value, engine.counts.gaps


@pytest.mark.parametrize(("is_kept", "expected"), [(True, (14.0, 0)), (False, (8.0, 1))])
def test_the_total_of_a_client_whose_subscription_changes(is_kept: bool, expected: tuple[float, int]) -> None:
    stage = Stage(keep_unknown_subscription=is_kept, telemetry_max_bytes=1_000)
    stage.push(counted(5, 0, 60))
    stage.wait()
    stage.change()

    codes = [stage.push(counted(4, 60, 120))]
    stage.takes()
    stage.wait(INTERVAL_MS // 2)
    codes.append(stage.push(counted(2, 120, 150)))
    stage.wait()
    codes.append(stage.push(counted(3, 150, 210)))

    assert codes == [UNKNOWN, EARLY, NONE]
    assert total_of(stage) == expected


def test_the_total_of_a_client_with_a_push_that_is_too_large() -> None:
    stage = Stage(keep_byte_rate=1_000, telemetry_max_bytes=len(counted(5, 0, 60)))
    stage.push(counted(5, 0, 60))
    stage.wait()

    code = stage.push(counted(4, 60, 120) + otlp("m"))
    stage.wait()
    stage.push(counted(3, 120, 180))

    assert code is LARGE
    assert total_of(stage) == (12.0, 0)


# The byte budget


def test_early_and_large_pushes_are_lost_by_default(stage: Stage) -> None:
    stage.push()

    codes = [stage.push(PAYLOADS[1]), stage.push(PAYLOADS[2], subscription_id=0)]
    stage.wait()
    codes.append(stage.push(LARGE_PAYLOAD))

    assert codes == [EARLY, EARLY, LARGE]
    assert stage.stored == [(DATA, 0)]
    assert stage.manager.kept.lost == {(EARLY, Loss.OFF): 2, (LARGE, Loss.OFF): 1}


def test_early_and_large_pushes_are_stored_within_the_budget() -> None:
    stage = Stage(keep_byte_rate=1)
    stage.push()

    early = [stage.push(payload) for payload in PAYLOADS[1:5]]
    stage.wait(60_000)
    large = stage.push(LARGE_PAYLOAD)

    # Sixty bytes may come at once; the push that exceeds them is stored, the next one is not.
    kept_early = -(-60 // len(PAYLOADS[1]))
    assert (early, large) == ([EARLY] * 4, LARGE)
    assert stage.stored == [
        (DATA, 0),
        *((payload, 89) for payload in PAYLOADS[1 : 1 + kept_early]),
        (LARGE_PAYLOAD, 118),
    ]
    assert stage.accounts[0] == {EARLY: kept_early, LARGE: 1}
    assert stage.manager.kept.lost == {(EARLY, Loss.BUDGET): 4 - kept_early}


def test_a_damaged_push_is_charged_to_the_budget() -> None:
    stage = Stage(keep_byte_rate=1)
    stage.push()

    stage.push(b"\xff" * 61)
    stage.push(PAYLOADS[1])

    assert stage.manager.kept.lost == {(EARLY, Loss.UNSOUND): 1, (EARLY, Loss.BUDGET): 1}


def test_a_push_with_an_unknown_subscription_is_not_charged_to_the_budget() -> None:
    stage = Stage(keep_byte_rate=1)
    stage.change()

    stage.push(otlp("m" * 60))
    stage.push(PAYLOADS[1])
    stage.push(PAYLOADS[2])

    assert [mark for _, mark in stage.stored] == [117, 89, 89]


def test_a_push_that_opens_to_too_much_is_lost() -> None:
    stage = Stage(keep_byte_rate=1_000_000, max_decompressed_bytes=150)

    code = stage.push(LARGE_PAYLOAD)

    assert code is LARGE
    assert stage.manager.kept.lost == {(LARGE, Loss.UNSOUND): 1}


@pytest.mark.parametrize(
    ("failure", "kafka_policy", "code"),
    [
        (TooLarge("too large"), False, ErrorCode.TELEMETRY_TOO_LARGE),
        (WireError("not OTLP"), False, ErrorCode.INVALID_RECORD),
        (OSError("the worker died"), False, ErrorCode.THROTTLING_QUOTA_EXCEEDED),
        (OSError("the worker died"), True, ErrorCode.INVALID_RECORD),
    ],
)
def test_only_a_client_at_fault_is_told_to_stop(
    failure: Exception, kafka_policy: bool, code: ErrorCode
) -> None:
    assert blame(failure, kafka_policy) is code
