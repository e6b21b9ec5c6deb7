"""GROUP resources: consumer groups can be named and listed, they have no keys of their own yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from odradek.broker.broker import Broker
from odradek.broker.config_key import ConfigEntry
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigType
from odradek.wire.error_code import ErrorCode


class GroupResource:
    """All groups."""

    def entries(self, name: str, broker: Broker) -> Sequence[ConfigEntry]:
        """Nothing to show for a group with a name."""
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return ()

    def type_of(self, key: str) -> ConfigType:
        """No key is a list."""
        return ConfigType.UNKNOWN

    def default_of(self, key: str) -> str | None:
        """No list is changed item by item."""
        return None

    def validate(
        self, name: str, before: Mapping[str, str], after: Mapping[str, str], broker: Broker
    ) -> None:
        """No key is known."""
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        for key in after:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {key}")

    def apply(self, name: str, properties: Mapping[str, str], broker: Broker) -> None:
        """Nothing changes."""
