"""UpdateFeatures v0-v2 (KIP-584, KIP-778, KIP-1022).

Behavior:
    * All features are set, or none: a fault of one is INVALID_UPDATE_VERSION at the top.
    * A level below the current one needs a request that allows a downgrade.
    * Levels survive restarts.
Versions:
    * v1: types of upgrades; ``validate_only``, which changes nothing. v2: no results per feature.
Ignored fields:
    * AllowDowngrade (v0): a level never goes down in this version, as in Kafka.
    * TimeoutMs: the levels apply before the answer.
Differs from Kafka:
    * kraft.version and eligible.leader.replicas.version turn nothing on: only their levels change. They start
      at 0, where a new cluster of Kafka has the newest levels.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.features import METADATA_VERSION, Feature, Features
from odradek.plugin.authorizer import AclOperation
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


@answers(UpdateFeaturesRequest)
def update_features(
    request: UpdateFeaturesRequest, context: RequestContext, broker: Broker
) -> UpdateFeaturesResponse:
    broker.authorization.require_on_cluster(context, AclOperation.ALTER)
    updates = {update.feature: update for update in request.feature_updates}
    for update in updates.values():
        fault = fault_of(update, broker.features, broker.settings.node_id)
        if fault is not None:
            raise ApiError(
                ErrorCode.INVALID_UPDATE_VERSION,
                f"The update failed for all features since the following feature had an error: {fault}",
            )
    if not request.validate_only:
        broker.finalize({name: update.max_version_level for name, update in updates.items()})
    results = [UpdatableFeatureResult(feature=name, error_message="NONE") for name in updates]  # Kafka's text
    return UpdateFeaturesResponse(error_message=None, results=results)


def fault_of(update: FeatureUpdateKey, features: Features, node_id: int) -> str | None:
    """The fault of one update, in Kafka's order and words; None if there is none."""
    kind, level = update.upgrade_type, update.max_version_level
    known = next((feature for feature in features if feature.name == update.feature), None)
    invalid = f"Invalid update version {level} for feature {update.feature}."
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return f"{invalid} The controller does not support the given upgrade type."
    if level < 0:
        return f"{invalid} A feature version cannot be less than 0."
    if known is None:
        return f"{invalid} Local controller {node_id} does not support this feature."
    if not known.min_version <= level <= known.max_version:
        supported = f"{known.min_version}-{known.max_version}"
        return f"{invalid} Local controller {node_id} only supports versions {supported}"
    return fault_of_step(known, features.level(known.name), level, kind)


def fault_of_step(feature: Feature, current: int, level: int, kind: int) -> str | None:
    """The fault of going from the current level to a supported one; None if there is none."""
    invalid = f"Invalid update version {level} for feature {feature.name}."
    if level < current and kind == UPGRADE:
        return (
            f"{invalid} Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    if level > current and kind != UPGRADE:
        return f"{invalid} Can't downgrade to a newer version."
    if level < current and feature.name == METADATA_VERSION:
        reason = (
            "Refusing to perform the requested downgrade because it might delete metadata information."
            if kind == SAFE_DOWNGRADE
            else "Unsafe metadata downgrade is not supported in this version."
        )
        return f"Unsupported metadata.version downgrade from {current} to {level}. {reason}"
    return None
