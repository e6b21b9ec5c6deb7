"""UpdateFeatures v0-v2 (KIP-584, KIP-778, KIP-1022).

Behavior:
    * All features are set, or none: a fault of one is INVALID_UPDATE_VERSION at the top.
    * A level below the current one needs a request that allows a downgrade.
    * Levels survive restarts.
Versions:
    * v0: ``allow_downgrade``. v1: types of upgrades; ``validate_only``, which changes nothing. v2: no results
      per feature.
Ignored fields:
    * TimeoutMs: the levels apply before the answer.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.features import Features
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


@answers(UpdateFeaturesRequest, UpdateFeaturesResponse)
def update_features(
    request: UpdateFeaturesRequest, context: RequestContext, broker: Broker
) -> UpdateFeaturesResponse:
    updates = {update.feature: update for update in request.feature_updates}
    for update in updates.values():
        fault = fault_of(update, context.api_version, broker.features, broker.settings.node_id)
        if fault is not None:
            raise ApiError(
                ErrorCode.INVALID_UPDATE_VERSION,
                "The update failed for all features since the following feature had an error: Invalid update "
                f"version {update.max_version_level} for feature {update.feature}. {fault}",
            )
    if not request.validate_only:
        broker.finalize({name: update.max_version_level for name, update in updates.items()})
    results = [UpdatableFeatureResult(feature=name, error_message="NONE") for name in updates]  # Kafka's text
    return UpdateFeaturesResponse(error_message=None, results=results)


def fault_of(update: FeatureUpdateKey, version: int, features: Features, node_id: int) -> str | None:
    """The fault of one update, in Kafka's order and words; None if there is none."""
    kind, level = upgrade_type(update, version), update.max_version_level
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    known = next((feature for feature in features if feature.name == update.feature), None)
    if known is None:
        return f"Local controller {node_id} does not support this feature."
    if not known.min_version <= level <= known.max_version:
        supported = f"{known.min_version}-{known.max_version}"
        return f"Local controller {node_id} only supports versions {supported}"
    if level < features.level(known.name) and kind == UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade."
        )
    return None


def upgrade_type(update: FeatureUpdateKey, version: int) -> int:
    """Whether the level may go down."""
    if version > 0:
        return update.upgrade_type
    return SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
