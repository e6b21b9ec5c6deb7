"""DescribeConfigs, API key 32 (KIP-133).

Source: DescribeConfigsRequest.json and DescribeConfigsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import Bool, Int8, Int16, Int32, Message, String, Struct, between, since


class DescribeConfigsResource(Struct):
    """One of `DescribeConfigsRequest.resources`."""

    resource_type: Int8 = 0
    """2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."""
    resource_name: String = ""
    configuration_keys: list[String] | None = field(default_factory=list)
    """Null for all."""


class DescribeConfigsSynonym(Struct):
    """One of `DescribeConfigsResourceResult.synonyms`."""

    name: String = ""
    value: String | None = ""
    source: Int8 = 0
    """See `DescribeConfigsResourceResult.config_source`."""


class DescribeConfigsResourceResult(Struct):
    """One of `DescribeConfigsResult.configs`."""

    name: String = ""
    value: String | None = ""
    """Null if sensitive, or not set."""
    read_only: Bool = False
    config_source: Int8 = -1
    """1 topic, 2 broker, 3 all brokers, 4 properties file, 5 default, 6 logger, 7 client metrics, 8 group."""
    is_sensitive: Bool = False
    synonyms: list[DescribeConfigsSynonym] = field(default_factory=list)
    """The other sources of a value, strongest first."""
    config_type: Annotated[Int8, since(3)] = 0
    """1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password; 0 unknown."""
    documentation: Annotated[String | None, since(3)] = ""


class DescribeConfigsResult(Struct):
    """One of `DescribeConfigsResponse.results`."""

    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[DescribeConfigsResourceResult] = field(default_factory=list)


class DescribeConfigsRequest(Message, api_key=32, versions=between(1, 4), flexible=since(4)):
    """Read the configuration of resources."""

    resources: list[DescribeConfigsResource] = field(default_factory=list)
    include_synonyms: Bool = False
    include_documentation: Annotated[Bool, since(3)] = False


class DescribeConfigsResponse(Message, answers=DescribeConfigsRequest):
    """Answer to `DescribeConfigsRequest`."""

    throttle_time_ms: Int32 = 0
    results: list[DescribeConfigsResult] = field(default_factory=list)
