"""Alterations of configurations that brokers are asked to validate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from odradek.wire.config_resource import ConfigOperation, ConfigType, ResourceType
from odradek.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from support.wire_client import WireClient

TEXTS = ("x", "-5", "0", "")
SAMPLES = {
    ConfigType.BOOLEAN: "true",
    ConfigType.CLASS: "java.lang.String",
    ConfigType.DOUBLE: "0.5",
    ConfigType.INT: "5",
    ConfigType.LONG: "5",
    ConfigType.SHORT: "5",
}
SET, DELETE, APPEND, SUBTRACT = ConfigOperation


@dataclass(frozen=True, slots=True)
class Question:
    """One alteration of one key."""

    kind: int
    resource: str
    key: str
    operation: int
    value: str | None

    def asked(self, client: WireClient, *, validate_only: bool = True) -> tuple[int, str | None]:
        """The error and its text."""
        change = AlterableConfig(name=self.key, config_operation=self.operation, value=self.value)
        resource = AlterConfigsResource(
            resource_type=self.kind, resource_name=self.resource, configs=[change]
        )
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
        (answer,) = client.send(request, 1).responses
        return answer.error_code, answer.error_message


def described(client: WireClient, kind: int, name: str) -> list[DescribeConfigsResourceResult]:
    """All keys of a resource that a broker shows."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
    (result,) = client.send(request, 4).results
    assert result.error_code == 0
    return list(result.configs)


def questions(
    kind: int, names: Iterable[str], keys: Iterable[DescribeConfigsResourceResult], extra: Iterable[str] = ()
) -> Iterator[Question]:
    """Every key with its value, with other texts and with every operation."""
    values = {key.name: sample(key) for key in keys} | dict.fromkeys(extra, "5")
    for name in names:
        for key, value in values.items():
            for text in dict.fromkeys((value, *TEXTS)):
                yield Question(kind, name, key, SET, text)
            yield Question(kind, name, key, DELETE, None)
            for operation in (APPEND, SUBTRACT) if kind == ResourceType.BROKER else ():
                yield Question(kind, name, key, operation, "q")


def sample(key: DescribeConfigsResourceResult) -> str:
    """The value of a key, or one of its type."""
    return SAMPLES.get(ConfigType(key.config_type), "some") if key.value is None else key.value
