"""An enricher, which is called once per client and connection on the host's loop and must not block."""

from __future__ import annotations

from collections.abc import Mapping

from odradek.plugin import RequestContext


class ExampleEnricher:
    """Labels each client with the team of its user."""

    def __init__(self, teams: Mapping[str, str]) -> None:
        self.teams = teams

    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str]:
        """The labels of a client.

        They depend on the principal, which a client with a password cannot choose, and not on the client id.
        """
        user = context.connection.principal.removeprefix("User:")
        return {"team": self.teams.get(user, "unknown")}
