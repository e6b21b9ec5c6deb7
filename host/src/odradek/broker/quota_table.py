"""Client quotas of the configuration file: the tables ``[quotas.NAME]``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from odradek.broker.client_quotas import CLIENT_ID, CLIENT_KEYS, ENTITY_TYPES, IP, IP_KEYS, USER
from odradek.plugin.config import ConfigError, PluginConfig
from odradek.quota.host_names import plain_address
from odradek.settings.kinds import LONG, TEXT, Special, Whole
from odradek.settings.reading import read_settings
from odradek.settings.setting import Scope, setting
from odradek.wire.config_resource import ConfigType

DEFAULT_NAME: Final = "<default>"
"""The name of the default entity in the file."""


def read_rate(table: PluginConfig, key: str) -> float:
    """Return a number above 0.

    Raises:
        ConfigError: It is something else.
    """
    value = table.value(key)
    try:
        rate = float(str(value))
    except ValueError:
        rate = math.nan
    if isinstance(value, bool) or not 0 < rate < math.inf:
        raise table.error(key, f"expected a number above 0, found {value!r}")
    return rate


RATE: Final = Special(type=ConfigType.DOUBLE, shape="number, above 0", read=read_rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaTable:
    """The entity of one table, and its quotas."""

    # fmt: off
    user: str | None = setting(
        "user", TEXT, None,
        "User that the quotas are for, without the type of the principal; `<default>` for all others.",
        scope=Scope.QUOTA, unset="any user",
    )
    client_id: str | None = setting(
        "client-id", TEXT, None,
        "Client id that the quotas are for; `<default>` for all others.",
        scope=Scope.QUOTA, unset="any client id",
    )
    ip: str | None = setting(
        "ip", TEXT, None,
        "IP address that the quota is for; `<default>` for all others. Not with `user` or `client-id`.",
        scope=Scope.QUOTA, unset="none",
    )
    producer_byte_rate: int | None = setting(
        "producer_byte_rate", Whole(LONG, 1), None, "Bytes of Produce requests.",
        unit="bytes/s", scope=Scope.QUOTA, unset="no limit",
    )
    consumer_byte_rate: int | None = setting(
        "consumer_byte_rate", Whole(LONG, 1), None, "Bytes of Fetch responses.",
        unit="bytes/s", scope=Scope.QUOTA, unset="no limit",
    )
    request_percentage: float | None = setting(
        "request_percentage", RATE, None, "Processing time of requests, in percent of one thread.",
        unit="%", scope=Scope.QUOTA, unset="no limit",
    )
    controller_mutation_rate: float | None = setting(
        "controller_mutation_rate", RATE, None, "Partitions created and deleted.",
        unit="partitions/s", scope=Scope.QUOTA, unset="no limit",
    )
    connection_creation_rate: int | None = setting(
        "connection_creation_rate", Whole(ConfigType.INT, 1), None, "New connections from the address.",
        unit="connections/s", scope=Scope.QUOTA, unset="no limit",
    )
    # fmt: on

    @property
    def entity(self) -> dict[str, str | None]:
        """Names by type; the name None is the default entity."""
        names = {USER: self.user, CLIENT_ID: self.client_id, IP: self.ip}
        return {
            kind: None if name == DEFAULT_NAME else name for kind, name in names.items() if name is not None
        }

    @property
    def values(self) -> dict[str, float]:
        """The quotas, by key."""
        found = {key: getattr(self, key) for key in (*CLIENT_KEYS, *IP_KEYS)}
        return {key: float(value) for key, value in found.items() if value is not None}

    def check(self) -> None:
        """Check that the quotas are those of the entity.

        Raises:
            ConfigError: They are not.
        """
        self.check_entity()
        keys = CLIENT_KEYS if self.ip is None else IP_KEYS
        for key in self.values:
            if key not in keys:
                raise ConfigError(key, f"expected {', '.join(keys)} with these entities")
        if not self.values:
            raise ConfigError(next(iter(keys)), "no quota is set in this table")

    def check_entity(self) -> None:
        """Check that there can be such an entity.

        Raises:
            ConfigError: There cannot.
        """
        entity = self.entity
        if not entity:
            raise ConfigError(USER, f"expected one of {', '.join(ENTITY_TYPES)}, found none")
        for kind, name in entity.items():
            if name == "":
                raise ConfigError(kind, f"expected a name, or {DEFAULT_NAME}, found none")
        if IP not in entity:
            return
        if len(entity) > 1:
            raise ConfigError(IP, f"cannot be used with {USER} or {CLIENT_ID}")
        if entity[IP] is not None and plain_address(entity[IP] or "") is None:
            raise ConfigError(IP, f"expected an IP address or {DEFAULT_NAME}, found {self.ip!r}")


def read_quota_tables(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, QuotaTable]:
    """Return the tables by name.

    Raises:
        ConfigError: A key or a value is wrong, or two tables are about one entity.
    """
    found: dict[str, QuotaTable] = {}
    owners: dict[frozenset[tuple[str, str | None]], str] = {}
    for name, values in tables.items():
        table = PluginConfig(f"quotas.{name}", values)
        found[name] = read_settings(QuotaTable, table)
        table.finish()
        owner = owners.setdefault(frozenset(found[name].entity.items()), name)
        if owner != name:
            raise ConfigError(f"quotas.{name}", f"has the entity of quotas.{owner}; join the two tables")
    return found
