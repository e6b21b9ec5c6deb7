"""The keys of ``--command-config`` that say how the client authenticates."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from functools import partial

from odradek.client.sasl import MECHANISMS, SaslLogin, token_in
from odradek.endpoints.token_file import TOKEN_URL, TokenError, token_path
from odradek.plugin.config import PluginConfig
from odradek.security.oauth.oauth_settings import OAUTHBEARER
from odradek.settings.properties import JAAS, UNSECURED_SUBJECT, jaas_options

UNSECURED_LASTS_S = 3_600


def sasl_login(config: PluginConfig) -> SaslLogin:
    """Read the mechanism and its credentials.

    Raises:
        ConfigError: A credential is missing, or the mechanism is not supported.
    """
    mechanism = config.text("sasl.mechanism") or ""
    if mechanism not in MECHANISMS:
        raise config.error("sasl.mechanism", f"expected one of {', '.join(MECHANISMS)}, found {mechanism!r}")
    jaas = jaas_options(config.text(JAAS) or "")
    if mechanism == OAUTHBEARER:
        return SaslLogin(mechanism, token=token_source(config, jaas))
    user = config.text("sasl.username") or jaas.get("username")
    password = config.text("sasl.password") or jaas.get("password")
    if not user or not password:
        raise config.error(JAAS, "expected username and password, here or as sasl.username and sasl.password")
    return SaslLogin(mechanism, user, password)


def token_source(config: PluginConfig, jaas: Mapping[str, str]) -> Callable[[], str]:
    """Read where the tokens of OAUTHBEARER come from: a file, or nowhere for one without a signature.

    Raises:
        ConfigError: There is no such source.
    """
    url = config.text(TOKEN_URL)
    if url is not None:
        try:
            path = token_path(url)
        except TokenError as error:
            raise config.error(TOKEN_URL, str(error)) from None
        if path is None:
            raise config.error(TOKEN_URL, f"expected the file of a token as file:///PATH, found {url!r}")
        return token_in(path)
    user = jaas.get(UNSECURED_SUBJECT)
    if not user:
        raise config.error(
            TOKEN_URL,
            f"expected the file of a token as file:///PATH; or {UNSECURED_SUBJECT} in {JAAS}, for a broker "
            "that accepts tokens without a signature",
        )
    return partial(unsecured_token, user)


def unsecured_token(user: str) -> str:
    """Return a token without a signature for an hour, as Kafka's OAuthBearerLoginModule makes it."""
    now_s = int(time.time())
    parts: tuple[dict[str, object], ...] = (
        {"alg": "none"},
        {"sub": user, "iat": now_s, "exp": now_s + UNSECURED_LASTS_S},
    )
    return "".join(urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") + "." for part in parts)
