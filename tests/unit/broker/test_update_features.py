from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.metadata.store import MetadataStore
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from support.broker import BrokerClient, make_broker

VERSIONS = range(UpdateFeaturesRequest.VERSIONS.first, UpdateFeaturesRequest.VERSIONS.last + 1)
GROUP, LEVEL = "group.version", 1
"""A feature and its default level."""
METADATA = "metadata.version"
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def ask(
    broker: Broker, *updates: FeatureUpdateKey, version: int = 2, **fields: Any
) -> tuple[int, str | None]:
    """The error code and message of the answer."""
    request = UpdateFeaturesRequest(feature_updates=list(updates), **fields)
    response = BrokerClient(broker).send(request, version)
    assert isinstance(response, UpdateFeaturesResponse)
    named = [] if response.error_code or version > 1 else [update.feature for update in updates]
    assert [(result.feature, result.error_code) for result in response.results] == [(n, 0) for n in named]
    return response.error_code, response.error_message


def update(level: int, name: str = GROUP, **fields: Any) -> FeatureUpdateKey:
    return FeatureUpdateKey(feature=name, max_version_level=level, **fields)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_level_in_force_can_be_set_again(version: int) -> None:
    broker = make_broker()

    assert ask(broker, update(LEVEL), version=version) == (0, None)

    assert (broker.features.levels, broker.features.epoch) == ({}, 0)  # a later release may have another one


@pytest.mark.parametrize(
    ("version", "wanted"),
    [
        (1, update(0, upgrade_type=SAFE_DOWNGRADE)),
        (2, update(0, upgrade_type=UNSAFE_DOWNGRADE)),
    ],
)
def test_a_downgrade_is_made_if_the_request_allows_it(version: int, wanted: FeatureUpdateKey) -> None:
    broker = make_broker()

    answer = ask(broker, wanted, version=version)

    assert answer == (0, None)
    assert (broker.features.level(GROUP), broker.features.epoch) == (0, 1)


def test_the_first_version_has_no_downgrade() -> None:
    broker = make_broker()

    code, _ = ask(broker, update(0, allow_downgrade=True), version=0)

    assert code == ErrorCode.INVALID_UPDATE_VERSION


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("kraft.version", 1),
        ("eligible.leader.replicas.version", 1),
    ],
)
def test_every_supported_level_can_be_set(name: str, level: int) -> None:
    broker = make_broker()

    answers = [
        ask(broker, update(level, name)),
        ask(broker, update(level - 1, name)),
        ask(broker, update(0, name, upgrade_type=SAFE_DOWNGRADE)),
    ]

    assert [code for code, _ in answers] == [0, ErrorCode.INVALID_UPDATE_VERSION, 0]
    assert broker.features.levels == {name: 0}


def test_levels_survive_a_restart() -> None:
    store = MetadataStore(":memory:")
    ask(make_broker(metadata=store), update(0, upgrade_type=SAFE_DOWNGRADE))

    again = make_broker(metadata=store)

    assert (again.features.level(GROUP), again.features.epoch) == (0, 1)


def test_validate_only_changes_nothing() -> None:
    broker = make_broker()

    answer = ask(broker, update(0, upgrade_type=SAFE_DOWNGRADE), validate_only=True)

    assert answer == (0, None)
    assert broker.features.level(GROUP) == LEVEL


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (update(0), "Can't downgrade"),
        (update(9), "only supports versions 0-1"),
        (update(-1), "cannot be less than 0"),
        (update(1, "nope"), "does not support this feature"),
        (update(1, ""), "does not support this feature"),
        (update(1, upgrade_type=0), "upgrade type"),
        (update(1, upgrade_type=9), "upgrade type"),
        (update(29, METADATA), "Can't downgrade the version of this feature"),
        (update(6, METADATA), "only supports versions 7-"),
        (update(1, "kraft.version", upgrade_type=SAFE_DOWNGRADE), "Can't downgrade to a newer version."),
    ],
)
def test_one_bad_update_refuses_all(wanted: FeatureUpdateKey, words: str) -> None:
    broker = make_broker()
    other = next(feature.name for feature in broker.features if feature.name != GROUP)

    code, message = ask(broker, update(0, other, upgrade_type=SAFE_DOWNGRADE), wanted)

    assert code == ErrorCode.INVALID_UPDATE_VERSION
    assert words in (message or "")
    assert broker.features.epoch == 0


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (
            SAFE_DOWNGRADE,
            "Refusing to perform the requested downgrade because it might delete metadata information.",
        ),
        (UNSAFE_DOWNGRADE, "Unsafe metadata downgrade is not supported in this version."),
    ],
)
def test_the_metadata_version_cannot_be_lowered(kind: int, reason: str) -> None:
    broker = make_broker()
    level = broker.features.level(METADATA)

    code, message = ask(broker, update(level - 1, METADATA, upgrade_type=kind))

    assert code == ErrorCode.INVALID_UPDATE_VERSION
    assert message == (
        "The update failed for all features since the following feature had an error: Unsupported "
        f"metadata.version downgrade from {level} to {level - 1}. {reason}"
    )
    assert broker.features.level(METADATA) == level


@pytest.mark.parametrize("kind", [SAFE_DOWNGRADE, UNSAFE_DOWNGRADE])
def test_no_downgrade_leads_to_a_newer_level(kind: int) -> None:
    broker = make_broker()
    ask(broker, update(0, upgrade_type=SAFE_DOWNGRADE))

    code, message = ask(broker, update(1, upgrade_type=kind))

    assert code == ErrorCode.INVALID_UPDATE_VERSION
    assert (message or "").endswith(
        "Invalid update version 1 for feature group.version. Can't downgrade to a newer version."
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_an_empty_update_succeeds(version: int) -> None:
    assert ask(make_broker(), version=version) == (0, None)


def test_a_level_that_cannot_be_stored_is_not_in_force() -> None:
    broker = make_broker()
    broker.metadata.connection.execute("pragma query_only = on")

    code, _ = ask(broker, update(0, upgrade_type=SAFE_DOWNGRADE))

    assert code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (broker.features.level(GROUP), broker.features.epoch) == (LEVEL, 0)
