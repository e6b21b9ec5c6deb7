"""Matches requests with users, and refuses some."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from markupsafe import Markup
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request

from odradek.endpoints import Address, holder_of
from odradek_console.json_form import JsonRow
from odradek_console.web.access_settings import AccessSettings
from odradek_console.web.audit import Audit
from odradek_console.web.rate_limit import RateLimit
from odradek_console.web.refusals import Refused, too_many
from odradek_console.web.sessions import FormTokens, Session, Sessions
from odradek_console.web.streams import Streams
from odradek_console.web.tokens import LEAST_TOKEN, Token, TokenFile
from odradek_console.web.turns import NoTurn, Turns
from odradek_console.web.users import LOCAL, Login, Role, User

if TYPE_CHECKING:
    from odradek_console.web.oidc import Provider

CSRF_FIELD: Final = "csrf"
SESSION_COOKIE: Final = "odradek"
CSRF_HEADER: Final = "X-CSRF-Token"
LIVE_HEADER: Final = "X-Live"
"""Sent by a page that refreshes itself: no person has asked, and the session goes on idling."""
EVENTS: Final = "/events"
BEARER: Final = "bearer "
HOST: Final = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]{1,253})(:(?P<port>[0-9]{1,5}))?")
FORWARDING: Final = ("forwarded", "x-forwarded-for")
"""Headers of proxies."""
LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
TOO_SHORT: Final = f"the token is wrong: each has at least {LEAST_TOKEN} characters"
BURST_S: Final = 10
"""So many seconds of requests may come at once."""


@dataclass(slots=True)
class AccessCounts(JsonRow):
    """Counts of logins, and of refused requests by their reason."""

    logins: int = 0
    refused_logins: int = 0
    failed_logins: int = 0
    """The provider did not answer."""
    limited_requests: int = 0
    crowded_requests: int = 0
    """Earlier ones of the same user took too long."""
    refused_roles: int = 0
    refused_forms: int = 0
    """Without a valid token, or from another site."""
    refused_hosts: int = 0
    refused_bodies: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A request's user, and how the user is known."""

    user: User
    form_key: str | None
    """The owner of its forms' tokens; None if no browser adds the login by itself."""
    session: Session[Login] | None = None


class Access:
    """Matches requests with users. It belongs to the loop of the server.

    Args:
        settings: Who may look and act.
        address: What the server listens on.
        now_s: A monotonic clock.

    Raises:
        ConfigError: The settings are not safe at this address, or a login is not usable.
    """

    def __init__(
        self, settings: AccessSettings, address: Address, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        settings.check_at(address)
        self.settings = settings
        self.tokens = TokenFile(settings.tokens) if settings.tokens is not None else None
        self.oidc = provider_of(settings, now_s)
        self.sessions: Sessions[Login] = Sessions(
            settings.max_sessions, settings.session_idle_s, settings.session_age_s, now_s
        )
        self.forms = FormTokens(settings.session_age_s, now_s)
        self.audit = Audit(now_s)
        self.counts = AccessCounts()
        self.refused_logins = RateLimit(settings.logins_per_minute / 60, settings.logins_per_minute, now_s)
        per_s = settings.requests_per_second
        self.requests = RateLimit(per_s, per_s * BURST_S, now_s)
        self.turns = Turns(settings.max_requests_per_user)
        self.streams = Streams(settings.max_streams, settings.max_streams_per_user)
        self.hosts = frozenset(settings.hosts)
        if self.hosts or not settings.has_login:
            self.hosts |= LOOPBACK_NAMES | {address.host.lower()}

    def figures(self) -> dict[str, int]:
        """The counts on the page of settings."""
        begun = len(self.oidc.begun.sessions) if self.oidc is not None else 0
        now = {
            "streams": self.streams.count,
            "sessions": len(self.sessions.sessions),
            "begun_logins": begun,
        }
        refused = {"refused_streams": self.streams.refusals, "evicted_sessions": self.sessions.evicted}
        return now | refused | self.counts.to_json()

    def address(self, connection: HTTPConnection) -> str:
        """The address of the client."""
        return self.settings.proxies.client_address(connection)

    def is_secure(self, connection: HTTPConnection) -> bool:
        """Whether the browser's connection has TLS, here or at a trusted proxy."""
        forwarded = self.settings.proxies.forwarded(connection, "x-forwarded-proto")
        return "https" in (connection.scope["scheme"], forwarded.lower())

    def check_host(self, connection: HTTPConnection) -> None:
        """Refuse names that are not the console's: another site may let its name point here (DNS rebinding).

        Raises:
            Refused: 421.
        """
        names = connection.headers.getlist("host")
        self.check_name(names[0].lower() if len(names) == 1 else "")

    def check_name(self, name: str) -> None:
        """Refuse a name, with or without a port, that is not the console's.

        Raises:
            Refused: 421.
        """
        found = HOST.fullmatch(name)
        if found is None or (self.hosts and found["name"].strip("[]") not in self.hosts):
            self.counts.refused_hosts += 1
            raise Refused(
                421,
                f"this console is not reached as {name[:100]!r}; --allowed-host NAME allows further names",
            )

    def caller(self, connection: HTTPConnection) -> Caller | None:
        """The user of a request; None if nobody is logged in.

        Raises:
            Refused: A token or the headers of a proxy are wrong.
        """
        address = self.address(connection)
        authorization = connection.headers.get("authorization", "")
        if self.tokens is not None and authorization.lower().startswith(BEARER):
            token = self.login(authorization[len(BEARER) :].strip(), address, "api.login")
            return Caller(user=User(token.name, token.role, address), form_key=None)
        try:
            named = self.settings.proxies.login(connection)
        except ValueError as error:
            raise Refused(403, str(error)) from None
        if named is not None:
            return Caller(user=User(*named, address), form_key=f"proxy:{named[0]}")
        if not self.settings.has_login:
            self.check_direct(connection)
            return Caller(user=User(LOCAL, self.settings.local_role, address), form_key=LOCAL)
        return self.of_session(connection, address)

    def check_direct(self, connection: HTTPConnection) -> None:
        """Refuse requests that a proxy on this machine has brought from others, who are not ``local``.

        Raises:
            Refused: 403.
        """
        if any(name in connection.headers for name in FORWARDING):
            raise Refused(
                403, "this request came through a proxy: name it with --trusted-proxy, or let users log in"
            )

    def of_session(self, connection: HTTPConnection, address: str) -> Caller | None:
        """The user of the session that a cookie names; None if there is none."""
        session = self.session(connection)
        if session is None:
            return None
        login: Login | None = session.held
        if isinstance(login, Token):
            login = self.tokens.current(login) if self.tokens is not None else None
        if login is None:
            self.sessions.close(session.id)
            return None
        if LIVE_HEADER not in connection.headers and connection.scope["path"] != EVENTS:
            self.sessions.touch(session)
        user = User(login.name, login.role, address)
        return Caller(user=user, form_key=f"session:{session.id}", session=session)

    def session(self, connection: HTTPConnection) -> Session[Login] | None:
        """The session that a cookie names; None if there is none."""
        return self.sessions.find(connection.cookies.get(self.cookie(connection), ""))

    def begin_session(self, login: Login, address: str, before: str, how: str = "") -> str:
        """Begin a session, always a new one; return its id.

        Args:
            login: The user.
            address: The address of the browser.
            before: The id of the session that the browser had, which ends; empty without one.
            how: How the user is known, for the audit log.

        Raises:
            Refused: 429, the user logs in too often.
        """
        user = User(login.name, login.role, address)
        self.limit(f"user:{login.name}")
        self.sessions.close(before)
        session = self.sessions.open(login.name, login)
        self.counts.logins += 1
        self.audit.write(user, "login", "console", "allowed", how)
        return session.id

    def is_logged_in(self, connection: HTTPConnection) -> bool:
        """Whether the user of a request that is still being answered, such as a stream, is logged in."""
        try:
            return self.caller(connection) is not None
        except Refused:
            return False

    def cookie(self, connection: HTTPConnection, what: str = SESSION_COOKIE) -> str:
        """The name of a cookie. Cookies of one machine are not told apart by ports, hence the port."""
        found = HOST.fullmatch(connection.headers.get("host", "").lower())
        suffix = f"-{found['port']}" if found is not None and found["port"] else ""
        return f"{'__Host-' if self.is_secure(connection) else ''}{what}{suffix}"

    def login(self, text: str, address: str, act: str) -> Token:
        """The token that a user has sent. A right one passes however many wrong ones came from its address:
        another program there may send them.

        Raises:
            Refused: 401, there is no such token; 429, nor is there, and the address has sent many wrong ones.
        """
        token = self.tokens.find(text) if self.tokens is not None else None
        if token is not None:
            return token
        reason = "the token is wrong" if len(text) >= LEAST_TOKEN else TOO_SHORT
        raise self.refuse_login(reason, address, act)

    def refuse_login(self, reason: str, address: str, act: str = "login", name: str = "") -> Refused:
        """Count a login that is refused; return the answer, which tells less if there are many."""
        wait_s = self.refused_logins.take(holder_of(address))
        if wait_s > 0:
            self.counts.limited_requests += 1
            return too_many("wrong logins from this address", wait_s)
        self.counts.refused_logins += 1
        self.audit.refused(User(name, Role.VIEWER, address), act, "console", reason)
        return Refused(401, reason, {"WWW-Authenticate": "Bearer"})

    def limit(self, key: str) -> None:
        """Count a request.

        Raises:
            Refused: 429.
        """
        wait_s = self.requests.take(key)
        if wait_s > 0:
            self.counts.limited_requests += 1
            raise too_many("requests", wait_s)

    @asynccontextmanager
    async def turn(self, user: User) -> AsyncIterator[None]:
        """Wait until a request of a user may be answered; until the body ends, it is one of those that are.

        Raises:
            Refused: 429, the earlier requests of the user take too long.
        """
        try:
            async with self.turns.turn(user.name):
                yield
        except NoTurn:
            self.counts.crowded_requests += 1
            reason = f"{self.turns.most} requests of {user.name} are being answered already: wait for them"
            raise Refused(429, reason, {"Retry-After": "1"}) from None

    def check_origin(self, connection: HTTPConnection) -> None:
        """Refuse a form of another site.

        Raises:
            Refused: 403.
        """
        headers = connection.headers
        origin = headers.get("origin")
        site = headers.get("sec-fetch-site", "same-origin")
        if site != "same-origin" or (origin is not None and not self.is_own(origin, connection)):
            self.counts.refused_forms += 1
            raise Refused(403, "this form was sent by a page of another site")

    def forwarded_host(self, connection: HTTPConnection) -> str:
        """The name of the console that a proxy has passed on; empty without one."""
        return self.settings.proxies.forwarded(connection, "x-forwarded-host")

    def origin(self, connection: HTTPConnection) -> str:
        """The console as its browser knows it, such as ``https://console.example``.

        Raises:
            Refused: 421, a proxy has passed on a name that is not the console's.
        """
        name = (self.forwarded_host(connection) or connection.headers.get("host", "")).lower()
        self.check_name(name)
        return f"{'https' if self.is_secure(connection) else 'http'}://{name}"

    def is_own(self, origin: str, connection: HTTPConnection) -> bool:
        """Whether an origin is the console, as its browser knows it."""
        forwarded = self.forwarded_host(connection)
        scheme, separator, place = origin.lower().partition("://")
        if not separator or scheme not in ("http", "https"):
            return False
        own = {without_port(each.lower(), scheme) for each in (connection.headers.get("host", ""), forwarded)}
        return without_port(place, scheme) in own - {""}

    def check_form(self, caller: Caller, headers: Headers, form: Mapping[str, str]) -> None:
        """Refuse a form that does not come from a page of this user.

        Raises:
            Refused: 403.
        """
        if caller.form_key is None:
            return
        token = headers.get(CSRF_HEADER) or form.get(CSRF_FIELD, "")
        if not self.forms.is_valid(caller.form_key, token):
            self.counts.refused_forms += 1
            raise Refused(403, "this form is too old, or not of this console: open its page again")


def provider_of(settings: AccessSettings, now_s: Callable[[], float]) -> Provider | None:
    """The OpenID provider; None without one. Only then its library is imported."""
    if settings.oidc is None:
        return None
    from odradek_console.web.oidc import Provider

    return Provider(settings.oidc, settings.max_sessions, now_s)


def loopback_access() -> Access:
    """Everybody on this machine may look."""
    return Access(AccessSettings(), Address("127.0.0.1", 0))


def csrf_field(request: Request) -> Markup:
    """The hidden field of a form."""
    token = csrf_token(request)
    return Markup('<input type="hidden" name="{}" value="{}">').format(CSRF_FIELD, token)


def csrf_token(request: Request) -> str:
    """The token of a form, or of the header `CSRF_HEADER`; empty if the request needs none."""
    caller: Caller | None = getattr(request.state, "caller", None)
    if caller is None or caller.form_key is None:
        return ""
    access: Access = request.app.state.console.access
    return access.forms.make(caller.form_key)


def without_port(place: str, scheme: str) -> str:
    """A host without the port that its scheme has anyway."""
    return place.removesuffix(":443" if scheme == "https" else ":80")
