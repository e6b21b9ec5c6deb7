"""A custom plugin: an enricher that adds the label ``team``, taken from the prefix of the client id.

Run it: ``python examples/02_enrich_with_team.py`` (needs ``odradek[demo]``). Takes seconds.

To run the plugin in a host: ``odradek serve --plugin FILE``. To install it, make a package of it, which has
in its pyproject.toml::

    [project.entry-points.odradek]
    team = "my_package"
"""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import Producer

from odradek import testing
from odradek.plugin import PluginConfig, RequestContext, hookimpl

CLIENT_IDS = ("payments-invoicer-3", "search-indexer", "cron")


class TeamEnricher:
    """``payments-invoicer-3`` belongs to the team ``payments``."""

    def __init__(self, separator: str, unknown: str) -> None:
        self.separator = separator
        self.unknown = unknown

    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str]:
        team, separator, _ = (context.client_id or "").partition(self.separator)
        return {"team": team if separator else self.unknown}


class TeamPlugin:
    """Functions of a module work as well."""

    @hookimpl
    def odradek_enricher(self, config: PluginConfig) -> TeamEnricher:
        """Read ``[plugins.team]``. The host does not start if the table has an unread key."""
        return TeamEnricher(config.text("separator") or "-", config.text("unknown") or "nobody")


def main() -> None:
    with testing.host(plugins={TeamPlugin: {"unknown": "platform"}}) as host:
        host.subscribe("*", interval_ms=1000)
        servers = {"bootstrap.servers": host.bootstrap, "log_level": 3}
        clients = [Producer(servers | {"client.id": client_id}) for client_id in CLIENT_IDS]
        for client_id in CLIENT_IDS:
            points = host.telemetry.wait_for(client_id=client_id, timeout_s=20)
            print(f"{client_id}: team={points[0].labels['team']}")
        del clients


if __name__ == "__main__":
    main()
