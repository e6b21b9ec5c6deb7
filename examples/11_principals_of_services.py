"""A plugin that builds principals: services by the path of their token's subject, and neighbors by address.

Run it: ``python examples/11_principals_of_services.py`` (needs ``odradek[demo]``). Takes a second.
"""

from __future__ import annotations

import secrets

from confluent_kafka import Producer

from odradek import testing
from odradek.plugin import AuthenticationContext, PluginConfig, hookimpl
from odradek.testing import RunningHost

PATH = "spiffe://example.com/service/"


class ServicePrincipals:
    """``User:billing`` for the user ``spiffe://example.com/service/billing``; others keep their principals.

    Clients without SASL are called by their addresses, so that each can have its own quota.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def principal(self, authentication: AuthenticationContext) -> str:
        if authentication.sasl_user is None:
            return f"Address:{authentication.connection.client_address}"
        if authentication.sasl_user.startswith(self.path):
            return f"User:{authentication.sasl_user.removeprefix(self.path)}"
        return authentication.principal


class ServicesPlugin:
    @hookimpl
    def odradek_principal_builder(self, config: PluginConfig) -> ServicePrincipals | None:
        """Read ``[plugins.services]``."""
        path = config.text("path")
        return ServicePrincipals(path) if path else None


def principal(host: RunningHost, user: str | None = None) -> str:
    """The principal of a client."""
    producer = Producer(host.client(user))
    producer.produce("greetings", b"hello")
    producer.flush(5)
    return host.requests.of("Produce")[-1].context.connection.principal


if __name__ == "__main__":
    plugins = {ServicesPlugin: {"path": PATH}}
    with testing.host(plugins=plugins) as host:
        print("without SASL:", principal(host))
    users = {name: secrets.token_urlsafe() for name in (f"{PATH}billing", "alice")}
    with testing.host(plugins=plugins, users=users) as host:
        print("with SASL:", *(principal(host, user) for user in users))
