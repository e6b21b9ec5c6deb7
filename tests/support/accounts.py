"""The accounting law: whatever happened, each push is in exactly one place."""

from __future__ import annotations

from odradek.server.host import Host


def assert_accounts_balance(host: Host) -> None:
    """Every push was rejected, or accepted and kept; every record that was kept was delivered, is a dead
    letter, has expired, or is still to be delivered. On the host's loop.
    """
    accounts = host.telemetry.accounts
    assert accounts.balanced, accounts
    for runner in host.forwarders:
        stats = runner.stats()
        assert stats.balanced, (runner.name, stats)
    if host.spool is not None:
        written = host.spool.written
        held = sum(len(buffer.entries) for buffer in host.spool.writer.buffers.values())
        assert accounts.appended + accounts.empty <= written, (accounts, written)
        assert held <= accounts.waiting, (accounts, held)
        for runner in host.forwarders:
            stats = runner.stats()
            assert runner.feed is not None
            at_start = host.spool.begun_at - sum(runner.feed.cursor.origin.values())
            assert stats.offered == written + at_start + runner.feed.cursor.rewound, (written, stats)
