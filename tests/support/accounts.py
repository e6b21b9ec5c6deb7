"""The accounting law: each push is in exactly one place at all times."""

from __future__ import annotations

import urllib.request
from collections import defaultdict

from prometheus_client.parser import text_string_to_metric_families

from odradek.programs.host import Host

SCRAPE_TIMEOUT_S = 60
Accounts = defaultdict[tuple[str, str], int]


def assert_accounts_balance(host: Host) -> None:
    """Every push was rejected, or accepted and stored; every stored record was delivered, is a dead letter,
    has expired, or is still to be delivered. Runs on the host's loop.
    """
    accounts = host.telemetry.accounts
    assert accounts.balanced, accounts
    for runner in host.forwarders:
        stats = runner.stats()
        assert stats.balanced, (runner.name, stats)
    if host.spool is not None:
        written = host.spool.written
        held = sum(len(buffer.entries) for buffer in host.spool.writer.buffers.values())
        sources = [host.pushes.goodbyes, *(runner.entrance for runner in host.pushes.sources.runners)]
        everyone = [accounts, *(each.accounts for each in sources)]
        stored = sum(each.appended + each.empty + sum(each.kept.values()) for each in everyone)
        assert stored <= written, (everyone, written)
        assert held <= sum(each.waiting for each in everyone), (everyone, held)
        for runner in host.forwarders:
            stats = runner.stats()
            assert runner.feed is not None
            at_start = host.spool.begun_at - sum(runner.feed.cursor.origin.values())
            assert stats.offered == written + at_start + runner.feed.cursor.beyond, (written, stats)


def is_at_rest(host: Host) -> bool:
    """Whether all clients have gone and every push is settled. Runs on the host's loop.

    A client that closes while it waits for the answer to a push leaves the push behind.
    """
    return host.telemetry.accounts.waiting == 0 and not any(each.channels for each in host.listeners)


def assert_served_accounts_balance(metrics_url: str) -> Accounts:
    """The same for a host in another process, from its Prometheus metrics; pushes by metric and plugin."""
    with urllib.request.urlopen(metrics_url, timeout=SCRAPE_TIMEOUT_S) as page:
        text = page.read().decode()
    found: Accounts = defaultdict(int)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = sample.name.removeprefix("odradek_").removesuffix("_total")
            found[name, sample.labels.get("plugin", "")] += int(sample.value)
    settled = sum(
        found[f"push_{place}", ""]
        for place in ("appended", "empty", "repeated", "rejected", "kept", "waiting")
    )
    assert found["push_received", ""] == settled, text
    for plugin in [plugin for name, plugin in found if name == "forwarder_offered"]:
        places = ("delivered", "dropped", "rejected", "queued")
        settled = sum(found[f"forwarder_{place}", plugin] for place in places)
        assert found["forwarder_offered", plugin] == settled, text
    return found
