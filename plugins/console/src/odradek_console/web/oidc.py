"""Logins at an OpenID provider: the authorization code flow with PKCE, state and nonce.

Authlib knows the protocol; what is asked over the network has bounds of time and size. All of it blocks, so
it runs on threads of its own: pages do not wait for a slow provider.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from authlib.oidc.discovery import get_well_known_url
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from odradek.endpoints import holder_of
from odradek.endpoints.http_exchange import NoAnswer, exchange
from odradek.endpoints.tls_context import default_context
from odradek.plugin import ConfigError
from odradek_console.web.oidc_settings import LONGEST, OidcSettings, is_safe_address
from odradek_console.web.refusals import LoginRefused, ProviderFailed
from odradek_console.web.sessions import Begun, Sessions
from odradek_console.web.turns import NoTurn, Turns
from odradek_console.web.users import LOCAL, Login, is_name

Found = TypeVar("Found")

SCOPES: Final = ("openid", "profile")
ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""Of signatures with the provider's key. HS256, whose key could be a public one, and none are refused."""
HEADERS: Final = {"Accept": "application/json"}
FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
BASIC: Final = "client_secret_basic"
POST: Final = "client_secret_post"
MAX_BYTES: Final = 1 << 20
"""Of an answer."""
RENEW_S: Final = 3_600.0
"""The provider's documents are asked for again after this time; for an unknown key at once."""
SKEW_S: Final = 30
"""The clocks of the console and the provider may differ by so much."""
BEGUN_S: Final = 600.0
"""Time of a user at the provider."""
THREADS: Final = 8
THREADS_PER_ADDRESS: Final = 4


@dataclass(frozen=True, slots=True)
class Documents:
    """The metadata and the keys of the provider."""

    metadata: Mapping[str, Any]
    keys: KeySet
    fetched_s: float


class Provider:
    """An OpenID provider. Its methods block, except `on_thread`, which belongs to the loop as `begun` does.

    Args:
        settings: Where it is, and what its users may do.
        most: Logins that are begun and not done.
        now_s: A monotonic clock.
        wall_s: Seconds since the epoch, for the times in tokens.
    """

    def __init__(
        self,
        settings: OidcSettings,
        most: int,
        now_s: Callable[[], float] = time.monotonic,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self.now_s = now_s
        self.wall_s = wall_s
        has_tls = settings.ca is not None or settings.issuer.startswith("https:")
        self.tls = default_context(cafile=settings.ca) if has_tls else None
        self.begun: Sessions[Begun] = Sessions(most, BEGUN_S, BEGUN_S, now_s)
        self.turns = Turns(THREADS_PER_ADDRESS)
        self.threads = ThreadPoolExecutor(THREADS, "oidc")
        self.found: Documents | None = None
        self.fetching = threading.Lock()

    async def on_thread(self, address: str, step: Callable[[float], Found]) -> Found:
        """Do a step of a login.

        Args:
            address: The address of the browser. Each one has a share of the threads.
            step: What to do; it gets the monotonic time when all questions to the provider end.

        Raises:
            LoginRefused: The user is not let in.
            ProviderFailed: The provider does not answer, or others from this address wait for it.
        """
        deadline_s = self.now_s() + self.settings.timeout_s
        try:
            async with self.turns.turn(holder_of(address)):
                return await asyncio.get_running_loop().run_in_executor(self.threads, step, deadline_s)
        except NoTurn:
            raise ProviderFailed("other logins from this address wait for it") from None

    def begin(self, begun: Begun, deadline_s: float) -> str:
        """The address where a user logs in.

        Args:
            begun: The login.
            deadline_s: The end of all questions to the provider.

        Raises:
            ProviderFailed: The provider cannot be reached.
        """
        url = prepare_grant_uri(
            self.documents(deadline_s).metadata["authorization_endpoint"],
            self.settings.client_id,
            "code",
            redirect_uri=begun.redirect_uri,
            scope=list(dict.fromkeys((*SCOPES, *self.settings.scopes))),
            state=begun.state,
            nonce=begun.nonce,
            code_challenge=create_s256_code_challenge(begun.verifier),
            code_challenge_method="S256",
        )
        return str(url)

    def finish(self, begun: Begun, code: str, deadline_s: float) -> tuple[Login, str]:
        """The user whom the provider has let in, and the user's id there.

        Args:
            begun: The login.
            code: What the provider has given the browser.
            deadline_s: The end of all questions to the provider.

        Raises:
            LoginRefused: The code or the token is not good, or the user may do nothing here.
            ProviderFailed: The provider cannot be reached.
        """
        tokens = self.tokens(begun, code, deadline_s)
        access_token = str(tokens.get("access_token", ""))
        claims = self.verified(str(tokens.get("id_token", "")), access_token, begun.nonce, deadline_s)
        settings = self.settings
        if not {settings.name_claim, settings.groups_claim} <= claims.keys() and access_token:
            claims = self.user_info(claims["sub"], access_token, deadline_s) | claims
        name, groups = claims.get(settings.name_claim), claims.get(settings.groups_claim)
        if not isinstance(name, str) or not is_name(name) or name == LOCAL:
            raise LoginRefused(f"the provider sends no name of a user in the claim {settings.name_claim}")
        held = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
        role = settings.role([each for each in held if isinstance(each, str)])
        if role is None and groups is None:
            problem = f"the provider sends no claim {settings.groups_claim} for {name}: does it need a scope?"
            raise LoginRefused(problem, name)
        if role is None:
            raise LoginRefused(f"{name} is in no group that may look", name)
        return Login(name, role), claims["sub"]

    def documents(self, deadline_s: float, other_than: Documents | None = None) -> Documents:
        """The documents of the provider. They are fetched once for all that wait; each has its own deadline.

        Args:
            deadline_s: The end of all questions to the provider.
            other_than: Documents that no longer suffice.

        Raises:
            ProviderFailed: They cannot be fetched.
        """
        with self.fetching:
            found = self.found
            if found is None or found is other_than or self.now_s() - found.fetched_s > RENEW_S:
                found = self.found = self.fetch(deadline_s)
            return found

    def fetch(self, deadline_s: float) -> Documents:
        """Fetch the documents.

        Raises:
            ProviderFailed: One cannot be fetched, or is not usable.
        """
        issuer = self.settings.issuer
        metadata = self.ask(get_well_known_url(issuer, external=True), deadline_s)
        if metadata.get("issuer") != issuer:
            raise ProviderFailed(f"it calls itself {metadata.get('issuer')!r:.{LONGEST}}, not {issuer!r}")
        for each in ENDPOINTS:
            if not is_safe_address(metadata.get(each)):
                raise ProviderFailed(f"its {each} is no https address: {metadata.get(each)!r:.{LONGEST}}")
        found: Any = self.ask(metadata["jwks_uri"], deadline_s)
        try:
            keys = KeySet.import_key_set(found)
        except (JoseError, KeyError, TypeError, ValueError) as error:
            raise ProviderFailed(f"its keys are not usable: {error!s:.{LONGEST}}") from None
        return Documents(metadata, keys, self.now_s())

    def tokens(self, begun: Begun, code: str, deadline_s: float) -> dict[str, Any]:
        """The tokens for a code.

        Raises:
            LoginRefused: The code is not good, such as one that was used before.
            ProviderFailed: The provider does not answer, or does not know this console.
        """
        metadata, settings = self.documents(deadline_s).metadata, self.settings
        try:
            secret = settings.read_secret()
        except ConfigError as error:
            raise ProviderFailed(f"{error}") from None
        offered = metadata.get("token_endpoint_auth_methods_supported") or BASIC
        method = "none" if not secret else BASIC if BASIC in offered else POST
        body = prepare_token_request(
            "authorization_code", code=code, redirect_uri=begun.redirect_uri, code_verifier=begun.verifier
        )
        client = ClientAuth(settings.client_id, secret, method)
        place, headers, body = client.prepare("POST", metadata["token_endpoint"], HEADERS | FORM, body)
        return self.ask(place, deadline_s, headers, body.encode())

    def verified(self, id_token: str, access_token: str, nonce: str, deadline_s: float) -> dict[str, Any]:
        """The claims of an ID token.

        Raises:
            LoginRefused: It is not the provider's for this console and this login, or has expired.
            ProviderFailed: New keys of the provider cannot be fetched.
        """
        settings, found = self.settings, self.documents(deadline_s)
        registry = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
        wanted = {
            "iss": {"essential": True, "value": settings.issuer},
            "aud": {"essential": True, "value": settings.client_id},
        }
        known = {"nonce": nonce, "client_id": settings.client_id, "access_token": access_token}
        try:
            try:
                token = jwt.decode(id_token, found.keys, registry=registry)
            except InvalidKeyIdError:
                token = jwt.decode(id_token, self.documents(deadline_s, found).keys, registry=registry)
            claims = CodeIDToken(token.claims, token.header, wanted, known)
            claims.validate(now=int(self.wall_s()), leeway=SKEW_S)
        except (JoseError, TypeError, ValueError) as error:
            raise LoginRefused(f"the ID token is not good: {error!s:.{LONGEST}}") from None
        return dict(claims)

    def user_info(self, subject: str, access_token: str, deadline_s: float) -> dict[str, Any]:
        """The claims that the provider gives out separately; none if it has no place for them.

        Raises:
            LoginRefused: They are those of another user.
            ProviderFailed: They cannot be fetched.
        """
        place = self.documents(deadline_s).metadata.get("userinfo_endpoint")
        if not is_safe_address(place):
            return {}
        claims = self.ask(str(place), deadline_s, HEADERS | {"Authorization": f"Bearer {access_token}"})
        if claims.get("sub") != subject:
            raise LoginRefused("the provider's user info is that of another user")
        return claims

    def ask(
        self, url: str, deadline_s: float, headers: Mapping[str, str] = HEADERS, body: bytes | None = None
    ) -> dict[str, Any]:
        """The object at an address.

        Raises:
            LoginRefused: The provider answers that a code is not good.
            ProviderFailed: There is none, it is too large, or it does not come in time.
        """
        left_s = round(deadline_s - self.now_s(), 1)
        host = urlsplit(url).netloc
        try:
            if left_s <= 0:
                raise NoAnswer("no answer in time")
            answer = exchange(
                url, timeout_s=left_s, max_bytes=MAX_BYTES, body=body, headers=headers, tls=self.tls
            )
        except NoAnswer as error:
            raise ProviderFailed(f"{host}: {error!s:.{LONGEST}}") from None
        if len(answer.body) > MAX_BYTES:
            raise ProviderFailed(f"{host}: the answer has more than {MAX_BYTES} bytes")
        try:
            found = json.loads(answer.body)
        except (ValueError, RecursionError):
            found = None
        refusal = found.get("error") if isinstance(found, dict) else None
        if refusal == "invalid_grant":
            raise LoginRefused("the provider does not accept the code: it is too old, or was used before")
        if not answer.is_success or not isinstance(found, dict):
            said = f", {refusal!r:.{LONGEST}}" if refusal else ""
            raise ProviderFailed(f"{host}: HTTP {answer.status}{said}, expected a JSON object")
        return found
