"""The options of ``odradek console`` that say who may look and act."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any, Final

import click

from odradek.plugin import ConfigError
from odradek_console.terminal.options import a_file, a_text, duration, given, several
from odradek_console.web.access_settings import AccessSettings
from odradek_console.web.oidc_settings import OidcSettings
from odradek_console.web.proxies import USER_HEADER, Network, Proxies
from odradek_console.web.users import Role

OIDC: Final = OidcSettings(issuer="", client_id="")


def networks(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[Network, ...]:
    """Read networks."""
    try:
        return tuple(ip_network(value) for value in values)
    except ValueError as error:
        raise click.BadParameter(f"expected an address or a network such as 10.0.0.0/8: {error}") from None


def lowered(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Read names of hosts."""
    return tuple(value.strip("[]").lower() for value in values)


USERS: Final = (
    a_file("--tokens", "TOML file of the tokens that users log in with."),
    several(
        "--trusted-proxy",
        "NETWORK",
        "A proxy that logs users in, by its address or network; may be repeated.",
        networks,
    ),
    a_text("--user-header", "NAME", "Header of trusted proxies with the user.", USER_HEADER),
    a_text("--role-header", "NAME", "Header of trusted proxies with the roles; without it all are viewers."),
    click.option(
        "--role",
        type=click.Choice([each.value for each in Role]),
        default=Role.VIEWER.value,
        show_default=True,
        help="What everybody on this machine may do, if there is no login.",
    ),
    several(
        "--allowed-host",
        "NAME",
        "A name that browsers reach the console by; may be repeated. Without a login only names of "
        "loopback addresses are allowed.",
        lowered,
    ),
)
PROVIDER: Final = (
    a_text(
        "--oidc-issuer", "URL", "OpenID provider where users log in: an https URL, or http on this machine."
    ),
    a_text("--oidc-client-id", "ID", "The id of this console at the provider."),
    a_file(
        "--oidc-client-secret-file",
        "File with the secret of this console at the provider. PKCE is used with and without one.",
    ),
    several("--oidc-scope", "NAME", "A scope to ask for beside openid and profile; may be repeated."),
    a_text("--oidc-label", "NAME", "The provider's name on the page for logging in; its host without one."),
    a_text(
        "--oidc-name-claim",
        "CLAIM",
        "The claim with the name of a user: one that users cannot change to another's.",
        OIDC.name_claim,
    ),
    a_text(
        "--oidc-groups-claim",
        "CLAIM",
        "The claim with the groups of a user: a list, or one text.",
        OIDC.groups_claim,
    ),
    several("--oidc-operator", "GROUP", "A group whose users are operators; may be repeated."),
    several(
        "--oidc-viewer",
        "GROUP",
        "A group whose users are viewers; may be repeated. '*' is every user of the provider.",
    ),
    a_file("--oidc-ca", "PEM file of the CA of the provider's certificate, if the system does not know it."),
    duration("--oidc-timeout", "10s", "Time of the provider to answer in each step of a login."),
)


def proxies(options: dict[str, Any]) -> Proxies:
    """The trusted proxies."""
    return given(Proxies, options, networks=options["trusted_proxies"])


def oidc_settings(options: dict[str, Any]) -> OidcSettings | None:
    """The OpenID provider; None without one.

    Raises:
        ConfigError: There are further options of a provider, but no issuer.
    """
    found = given(OidcSettings, options, "oidc_", secret=options["oidc_client_secret_file"])
    if found.issuer:
        return found
    if found != OIDC:
        raise ConfigError("--oidc-issuer", "expected the issuer, since there are other options of a provider")
    return None


def access_settings(options: dict[str, Any]) -> AccessSettings:
    """The users, their roles, and bounds.

    Raises:
        ConfigError: There are options of an OpenID provider, but no issuer.
    """
    return given(
        AccessSettings,
        options,
        oidc=oidc_settings(options),
        proxies=proxies(options),
        local_role=Role(options["role"]),
        hosts=options["allowed_hosts"],
    )
