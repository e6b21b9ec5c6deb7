from __future__ import annotations

import pytest

from odradek.broker.features import GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION, Feature, Features
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.api_versions import ApiVersionsRequest
from support.broker import BrokerClient

SOFTWARE = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")


@pytest.mark.parametrize("name", [GROUP_VERSION, STREAMS_VERSION])
def test_the_protocols_of_groups_are_enabled_by_default(name: str) -> None:
    features = Features()

    level = features.level(name)

    assert level == 1
    assert features.finalized()[name] == 1


def test_a_disabled_feature_is_not_finalized() -> None:
    features = Features((Feature("some.version", 0, 2, 1),))

    features.finalize("some.version", 0)

    assert features.finalized() == {}
    assert features.epoch == 1


def test_a_feature_that_is_off_is_refused() -> None:
    features = Features()

    features.require(SHARE_VERSION)
    features.finalize(SHARE_VERSION, 0)
    with pytest.raises(ApiError) as caught:
        features.require(SHARE_VERSION)

    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_an_unknown_feature_has_level_0() -> None:
    features = Features()

    level = features.level("unknown.version")

    assert level == 0


@pytest.mark.parametrize(("name", "level"), [("unknown.version", 1), (GROUP_VERSION, 2), (GROUP_VERSION, -1)])
def test_an_unknown_level_is_refused(name: str, level: int) -> None:
    features = Features()

    with pytest.raises(ValueError, match="has no level"):
        features.finalize(name, level)

    assert features.epoch == 0


def test_api_versions_below_v4_hides_features_whose_minimum_is_0() -> None:
    client = BrokerClient()
    client.broker.features = Features((Feature("zero.version", 0, 1, 1), Feature("one.version", 1, 3, 2)))

    answers = {version: client.send(SOFTWARE, version) for version in (3, 4)}

    assert [feature.name for feature in answers[3].supported_features] == ["one.version"]
    assert [feature.name for feature in answers[4].supported_features] == ["zero.version", "one.version"]


@pytest.mark.parametrize("version", [3, 4])
def test_api_versions_returns_the_finalized_levels_and_a_valid_epoch(version: int) -> None:
    client = BrokerClient()

    answer = client.send(SOFTWARE, version)

    assert answer.finalized_features_epoch >= 0
    levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    assert levels[GROUP_VERSION] == 1
