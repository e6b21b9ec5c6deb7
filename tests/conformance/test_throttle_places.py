"""The places of throttle times in responses, compared with kio; see `test_kio_oracle`."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import kio.schema

from odradek.gateway.throttling.throttle_place import PLACES

NO_FIXED_PLACE = {0, 18, 38, 41}
"""Produce, ApiVersions, CreateDelegationToken, DescribeDelegationToken."""
OF_CONTROLLERS = {56, 58, 59, 62, 63, 67, 70, 73}
SIZES = {"error_code": 2, "expiry_timestamp": 8}


def responses() -> Iterator[Any]:
    """The responses of all APIs in all versions."""
    for module in pkgutil.walk_packages(kio.schema.__path__, "kio.schema."):
        if module.name.endswith(".response"):
            name = module.name.split(".")[2].title().replace("_", "") + "Response"
            yield getattr(importlib.import_module(module.name), name)


def offset_of(response: Any) -> int | None:
    """The bytes before the throttle time; None if there is no such field."""
    names = [field.name for field in dataclasses.fields(response)]
    if "throttle_time" not in names:
        return None
    return sum(SIZES[name] for name in names[: names.index("throttle_time")])


def test_the_places_are_those_of_the_schemas() -> None:
    wrong = []
    seen = set()
    for response in responses():
        key, version = response.__api_key__, response.__version__
        if key in NO_FIXED_PLACE | OF_CONTROLLERS:
            continue
        place, offset = PLACES.get(key), offset_of(response)
        seen.add(key)
        if place is None or version < place.first:
            right = offset is None
        else:
            right = offset == place.offset and (version >= place.flexible) == response.__flexible__
        if not right:
            wrong.append(f"{response.__name__} v{version}")

    assert wrong == []
    assert seen >= PLACES.keys()
