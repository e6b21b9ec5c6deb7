"""The principals of a host, if a plugin builds them."""

from __future__ import annotations

from collections.abc import Sequence

from odradek.hosting.active_plugin import ActivePlugin, only_offer
from odradek.hosting.offers import PRINCIPAL_BUILDER
from odradek.security.principals import BuiltPrincipals
from odradek.waiting.clock import Clock


def built_principals(
    plugins: Sequence[ActivePlugin], longest: int, clock: Clock, slow_ms: int
) -> BuiltPrincipals | None:
    """The principals that a plugin builds; None if the host makes Kafka's own.

    Raises:
        ConfigError: More than one plugin offers a builder.
    """
    found = only_offer(plugins, PRINCIPAL_BUILDER, "build principals")
    return None if found is None else BuiltPrincipals(*found, longest, clock, slow_ms)
