"""A plugin that builds principals: services by the path of their token's subject, and neighbors by address.

Run it: ``python examples/11_principals_of_services.py`` (needs ``odradek``).

The plugin is the class and the hook below. To install it, put both into a package and name the package in its
pyproject.toml::

    [project.entry-points.odradek]
    services = "my_package"

and configure it::

    [plugins.services]
    path = "spiffe://example.com/service/"
"""

from __future__ import annotations

import secrets
import tempfile
from pathlib import Path

from odradek.client.admin import AdminClient
from odradek.client.sasl import SaslLogin
from odradek.client.users import new_credential
from odradek.hosting.plugin_manager import load_plugins
from odradek.plugin import AuthenticationContext, PluginConfig, hookimpl
from odradek.programs.config import load_config
from odradek.programs.host import Host
from odradek.security.scram import ScramMechanism
from odradek.testing.host_thread import HostThread

BILLING = "spiffe://example.com/service/billing"


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
    """The object that the entry point would refer to. A module with this function works as well."""

    @hookimpl
    def odradek_principal_builder(self, config: PluginConfig) -> ServicePrincipals | None:
        """Read ``[plugins.services]``."""
        path = config.text("path")
        return ServicePrincipals(path) if path else None


def main(directory: Path) -> None:
    plugins = load_plugins()
    plugins.add("services", ServicesPlugin(), distribution="example", version="1.0")
    settings = [
        f"data.dir={directory}",
        "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "plugins.services.path=spiffe://example.com/service/",
    ]
    thread = HostThread(load_config(overrides=settings), plugins=plugins)
    thread.start()
    password = secrets.token_urlsafe()
    try:
        open_address, guarded = (f"127.0.0.1:{each.bound_port}" for each in thread.host.listeners)
        with AdminClient(open_address) as admin:
            users = [
                new_credential(user, ScramMechanism.SCRAM_SHA_256, password, 4096, secrets.token_bytes(16))
                for user in (BILLING, "alice")
            ]
            admin.alter_user_scram_credentials(upsertions=users)
            print("without SASL:", *principals(thread.host, 0))
        service, person = (SaslLogin("SCRAM-SHA-256", user, password) for user in (BILLING, "alice"))
        with AdminClient(guarded, login=service) as billing, AdminClient(guarded, login=person) as alice:
            billing.describe_cluster()
            alice.describe_cluster()
            print("with SASL:", *principals(thread.host, 1))
    finally:
        thread.close()


def principals(host: Host, listener: int) -> list[str]:
    """The principals of the clients of a listener."""
    return sorted({channel.context.principal for channel in host.listeners[listener].channels})


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
