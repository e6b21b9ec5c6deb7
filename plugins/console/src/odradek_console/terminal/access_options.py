"""The options of ``odradek console`` that say who may look and act."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any, Final

import click

from odradek.plugin import ConfigError
from odradek_console.terminal.options import A_FILE, duration, given
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
    click.option(
        "--tokens", type=A_FILE, metavar="FILE", help="TOML file of the tokens that users log in with."
    ),
    click.option(
        "--trusted-proxy",
        "trusted_proxies",
        multiple=True,
        metavar="NETWORK",
        callback=networks,
        help="A proxy that logs users in, by its address or network; may be repeated.",
    ),
    click.option(
        "--user-header",
        metavar="NAME",
        default=USER_HEADER,
        show_default=True,
        help="Header of trusted proxies with the user.",
    ),
    click.option(
        "--role-header",
        metavar="NAME",
        default="",
        help="Header of trusted proxies with the roles; without it all are viewers.",
    ),
    click.option(
        "--role",
        type=click.Choice([each.value for each in Role]),
        default=Role.VIEWER.value,
        show_default=True,
        help="What everybody on this machine may do, if there is no login.",
    ),
    click.option(
        "--allowed-host",
        "allowed_hosts",
        multiple=True,
        metavar="NAME",
        callback=lowered,
        help="A name that browsers reach the console by; may be repeated. Without a login only names of "
        "loopback addresses are allowed.",
    ),
)
PROVIDER: Final = (
    click.option(
        "--oidc-issuer",
        default="",
        metavar="URL",
        help="OpenID provider where users log in: an https URL, or http on this machine.",
    ),
    click.option(
        "--oidc-client-id", default="", metavar="ID", help="The id of this console at the provider."
    ),
    click.option(
        "--oidc-client-secret-file",
        type=A_FILE,
        metavar="FILE",
        help="File with the secret of this console at the provider. PKCE is used with and without one.",
    ),
    click.option(
        "--oidc-scope",
        "oidc_scopes",
        multiple=True,
        metavar="NAME",
        help="A scope to ask for beside openid and profile; may be repeated.",
    ),
    click.option(
        "--oidc-label",
        default="",
        metavar="NAME",
        help="The provider's name on the page for logging in; its host without one.",
    ),
    click.option(
        "--oidc-name-claim",
        default=OIDC.name_claim,
        show_default=True,
        metavar="CLAIM",
        help="The claim with the name of a user: one that users cannot change to another's.",
    ),
    click.option(
        "--oidc-groups-claim",
        default=OIDC.groups_claim,
        show_default=True,
        metavar="CLAIM",
        help="The claim with the groups of a user: a list, or one text.",
    ),
    click.option(
        "--oidc-operator",
        "oidc_operators",
        multiple=True,
        metavar="GROUP",
        help="A group whose users are operators; may be repeated.",
    ),
    click.option(
        "--oidc-viewer",
        "oidc_viewers",
        multiple=True,
        metavar="GROUP",
        help="A group whose users are viewers; may be repeated. '*' is every user of the provider.",
    ),
    click.option(
        "--oidc-ca",
        type=A_FILE,
        metavar="FILE",
        help="PEM file of the CA of the provider's certificate, if the system does not know it.",
    ),
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
