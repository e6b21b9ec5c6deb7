"""Settings for users and their roles.

Without a login everybody who reaches the loopback address is the user ``local``: each user and each program
of the machine. So ``local`` only looks, unless the person who started the console said otherwise. On other
addresses there must be a login.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from odradek.endpoints import Address
from odradek.plugin import ConfigError
from odradek_console.web.oidc_settings import OidcSettings
from odradek_console.web.proxies import Proxies, is_loopback
from odradek_console.web.users import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSettings:
    """Users, their roles, and bounds."""

    tokens: Path | None = None
    """The file of tokens; None: nobody can log in with one."""
    oidc: OidcSettings | None = None
    """The provider where users log in; None: there is none."""
    proxies: Proxies = field(default_factory=Proxies)
    local_role: Role = Role.VIEWER
    """The role of everybody on a loopback address without a login."""
    hosts: tuple[str, ...] = ()
    """Names that the console may be reached by; empty: any with a login, those of loopback without."""
    max_sessions: int = 1_000
    session_idle_s: float = 2 * 3_600
    session_age_s: float = 12 * 3_600
    logins_per_minute: int = 10
    """Refused logins of one address."""
    requests_per_second: int = 20
    """Of one user."""
    max_requests_per_user: int = 6
    """That are answered at once. A browser opens six connections, so one browser is never refused."""
    max_streams: int = 100
    max_streams_per_user: int = 20
    max_body_bytes: int = 1 << 20
    body_timeout_s: float = 30.0

    @property
    def has_page(self) -> bool:
        """Whether a person logs in at a page of the console."""
        return self.tokens is not None or self.oidc is not None

    @property
    def has_login(self) -> bool:
        """Whether there is a way to tell users apart."""
        return self.has_page or bool(self.proxies.networks)

    def check(self, address: Address) -> None:
        """Check that the console may listen on an address.

        Raises:
            ConfigError: Strangers could reach it, and there is no login; or a login is not usable.
        """
        if self.oidc is not None:
            self.oidc.check()
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
