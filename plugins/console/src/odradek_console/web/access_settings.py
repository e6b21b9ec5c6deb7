"""Settings for users and their roles.

Without a login everybody who reaches the loopback address is the user ``local``: each user and each program
of the machine. So ``local`` only looks, unless the person who started the console said otherwise. On other
addresses there must be a login.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from odradek.endpoints import Address
from odradek.plugin import ConfigError
from odradek.settings import FILE, Choice, declare, section
from odradek_console.setting_kinds import COUNT, HOSTS, SECONDS
from odradek_console.web.oidc_settings import OidcSettings
from odradek_console.web.proxies import Proxies, is_loopback
from odradek_console.web.users import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSettings:
    """Users, their roles, and bounds."""

    # fmt: off
    tokens: Path | None = declare(
        "tokens", FILE, None, "TOML file of the tokens that users log in with.", unset="none",
    )
    local_role: Role = declare(
        "role", Choice({each.value: each for each in Role}), Role.VIEWER,
        "What everybody on this machine may do, if there is no login.",
    )
    hosts: tuple[str, ...] = declare(
        "allowed.hosts", HOSTS, (),
        "A name that browsers reach the console by. Without a login only names of "
        "loopback addresses are allowed.",
        unset="any with a login, loopback without", option="--allowed-host",
    )
    max_sessions: int = declare(
        "max.sessions", COUNT, 1_000,
        "Logins at once; of the user with the most, the one that was idle for longest is ended.",
        unit="logins",
    )
    session_idle_s: float = declare(
        "session.idle.ms", SECONDS, 2 * 3_600.0,
        "A login ends after this time without a click; refreshed pages do not count.", unit="ms",
        option="--session-idle",
    )
    session_age_s: float = declare(
        "session.age.ms", SECONDS, 12 * 3_600.0, "A login, and a form, ends after this time.", unit="ms",
        option="--session-age",
    )
    logins_per_minute: int = declare(
        "logins.per.minute", COUNT, 10,
        "Wrong tokens and refused logins of one address, or one /64 of IPv6; then 429 to wrong ones. A right "
        "one passes.", unit="logins",
    )
    requests_per_second: int = declare(
        "requests.per.second", COUNT, 20, "Requests of one user, ten times as many at once; then 429.",
        unit="requests",
    )
    max_requests_per_user: int = declare(  # a browser opens six connections: one is never refused
        "max.requests.per.user", COUNT, 6,
        "Requests of one user that are answered at once; others of this user wait up to 5 s, then 429.",
        unit="requests",
    )
    max_streams: int = declare(
        "max.streams", COUNT, 100, "Live pages at once; further ones are renewed by a reload only.",
        unit="pages",
    )
    max_streams_per_user: int = declare(
        "max.streams.per.user", COUNT, 20, "Live pages of one user.", unit="pages",
    )
    max_body_bytes: int = declare(
        "max.body.bytes", COUNT, 1 << 20, "Size of a request, which has 30 s to come.", unit="bytes",
    )
    # fmt: on
    body_timeout_s: float = 30.0
    proxies: Proxies = section(Proxies)
    oidc: OidcSettings | None = None
    """The provider where users log in; None: there is none."""

    @property
    def has_page(self) -> bool:
        """Whether a person logs in at a page of the console."""
        return self.tokens is not None or self.oidc is not None

    @property
    def has_login(self) -> bool:
        """Whether there is a way to tell users apart."""
        return self.has_page or bool(self.proxies.networks)

    def check_at(self, address: Address) -> None:
        """Check that the console may listen on an address.

        Raises:
            ConfigError: Strangers could reach it, and there is no login; or a login is not usable.
        """
        if self.oidc is not None:
            self.oidc.check_usable()
        if self.has_login:
            if self.local_role is Role.OPERATOR:
                logins = "--tokens, --oidc-issuer, --trusted-proxy"
                raise ConfigError("--role", f"expected no role for everybody where users log in ({logins})")
        elif not is_loopback(address.host):
            problem = (
                f"{address.host} can be reached from other machines, so users must log in: give a file of "
                "tokens (--tokens) or trusted proxies (--trusted-proxy), name an OpenID provider "
                "(--oidc-issuer), or listen on 127.0.0.1"
            )
            raise ConfigError("--listen", problem)
