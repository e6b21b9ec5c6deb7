"""A token that is revoked, and renewed much later: pushes wait in the log, and none is dropped."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.hosts import EVERYTHING, running_host
from support.otlp_collector import Exchange, Mood, collecting
from support.spooling import names, push_all, until

BATCH_RECORDS = 10


def guarded(token: str, status: int) -> Mood:
    """Accepts requests with the token."""

    def mood(exchange: Exchange) -> None:
        if exchange.headers["authorization"] == f"Bearer {token}":
            exchange.take()
        else:
            exchange.body()
            exchange.answer(status)

    return mood


@pytest.mark.parametrize("status", [401, 403])
def test_no_push_is_lost_while_a_token_is_revoked(tmp_path: Path, status: int) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    with (
        collecting() as collector,
        running_host(
            tmp_path / "data",
            *EVERYTHING,
            "telemetry.linger.ms=0",
            f"plugins.otlp.endpoint={collector.url}",
            f"plugins.otlp.bearer.token.file={token}",
            f"plugins.otlp.batch.max.records={BATCH_RECORDS}",
            "plugins.otlp.batch.max.age.ms=10",
            "plugins.otlp.retry.backoff.ms=10",
            "plugins.otlp.retry.backoff.max.ms=20",
        ) as host,
    ):
        (runner,) = host.host.forwarders
        collector.mood = guarded("first", status)
        push_all(host, range(20))
        until(host, lambda: runner.stats().delivered == 20)

        collector.mood = guarded("second", status)
        codes = push_all(host, range(20, 20 + 8 * BATCH_RECORDS))
        until(host, lambda: runner.stats().retries > 8)
        waiting = runner.stats()
        token.write_text("second")
        until(host, lambda: runner.stats().delivered == 100)
        stats = runner.stats()
        assert host.host.spool is not None
        dead_letters = host.host.spool.dead_letters.partitions[0].log_end_offset

    assert codes == [0] * 80
    assert waiting.queued + waiting.in_flight == 80
    assert collector.seen == dict.fromkeys(names(range(100)), 1)
    assert (stats.rejected, stats.dropped, dead_letters) == ({}, {}, 0)
