"""The entity and the type of a client quota; after org.apache.kafka.server.quota.ClientQuotaEntity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal


class ClientQuotaType(Enum):
    """The limited resource. The value is the name of the metrics' group."""

    PRODUCE = "Produce"
    FETCH = "Fetch"
    REQUEST = "Request"
    CONTROLLER_MUTATION = "ControllerMutation"


class ConfigEntityType(Enum):
    """The parts of a client quota's entity."""

    USER = "user"
    CLIENT_ID = "client-id"
    DEFAULT_USER = "default-user"
    DEFAULT_CLIENT_ID = "default-client-id"


class Absent(Enum):
    """The entity has no part of that type."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
DEFAULT: Final = None
"""The default entity, for clients without a quota of their own; None on the wire too."""

Name = str | None | Literal[Absent.ABSENT]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuotaEntity:
    """A user, a client id, both together, or an IP address. Each is `ABSENT`, `DEFAULT` or a name."""

    user: Name = ABSENT
    """The name of the principal without its type, unescaped."""
    client_id: Name = ABSENT
    ip: Name = ABSENT

    @classmethod
    def of(cls, names: Mapping[str, str | None]) -> ClientQuotaEntity:
        """Build the entity from the entity types of AlterClientQuotas.

        Args:
            names: By type (``user``, ``client-id``, ``ip``): the name, or None for the default entity.

        Raises:
            KeyError: A type is unknown.
        """
        fields = {"user": "user", "client-id": "client_id", "ip": "ip"}
        return cls(**{fields[entity_type]: name for entity_type, name in names.items()})

    def names(self) -> dict[str, str | None]:
        """The names by the entity types of AlterClientQuotas, user first."""
        parts = {"user": self.user, "client-id": self.client_id, "ip": self.ip}
        return {entity_type: name for entity_type, name in parts.items() if name is not ABSENT}

    def config_entities(self) -> Iterator[tuple[ConfigEntityType, str]]:
        """User and client id as Kafka's callback receives them; the name of a default is empty."""
        if self.user is not ABSENT:
            kind = ConfigEntityType.DEFAULT_USER if self.user is None else ConfigEntityType.USER
            yield kind, self.user or ""
        if self.client_id is not ABSENT:
            kind = (
                ConfigEntityType.DEFAULT_CLIENT_ID if self.client_id is None else ConfigEntityType.CLIENT_ID
            )
            yield kind, self.client_id or ""
