"""``telemetry.client.instances.max``: how many client instances a host remembers."""

from __future__ import annotations

import pytest

from odradek.plugin.config import ConfigError
from odradek.programs.config import load_config
from odradek.wire.config_resource import ConfigSource, ResourceType
from odradek.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.types import NIL_UUID
from support.broker import BrokerClient, make_broker

KEY = "telemetry.client.instances.max"


@pytest.mark.parametrize("most", [1, 3])
def test_the_least_recently_used_instances_are_forgotten(most: int) -> None:
    config = load_config(None, [f"{KEY}={most}"])
    broker = make_broker(telemetry=config.telemetry)
    client = BrokerClient(broker)
    request = GetTelemetrySubscriptionsRequest(client_instance_id=NIL_UUID)

    ids = [client.send(request).client_instance_id for _ in range(5)]

    assert [each.client_instance_id for each in broker.telemetry.instances()] == ids[-most:]


def test_the_number_is_described_with_its_source() -> None:
    config = load_config(None, [f"{KEY}=3"])
    broker = make_broker(telemetry=config.telemetry, given=config.given)
    resource = DescribeConfigsResource(
        resource_type=ResourceType.BROKER, resource_name="1", configuration_keys=[KEY]
    )

    (result,) = BrokerClient(broker).send(DescribeConfigsRequest(resources=[resource])).results

    assert [(row.value, row.config_source) for row in result.configs] == [("3", ConfigSource.STATIC_BROKER)]


def test_a_host_remembers_at_least_one_instance() -> None:
    with pytest.raises(ConfigError, match=f"{KEY}: expected a whole number from 1"):
        load_config(None, [f"{KEY}=0"])
