"""The walks to throttle times in responses, compared with kio; see `test_kio_oracle`."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import kio.schema

from odradek.gateway.throttling.throttle_place import CORRELATION_ID_BYTES, walk_to_throttle
from odradek.wire.declared import DeclaredResponses
from odradek.wire.openings import OTHER_RESPONSES
from odradek.wire.walking import Walking

OF_CONTROLLERS = {56, 58, 59, 62, 63, 67, 70, 73}
LOCAL = {18, 38, 41}
"""ApiVersions, which no quota charges; CreateDelegationToken and DescribeDelegationToken."""
SIZES = {"error_code": 2, "expiry_timestamp": 8, "responses": 4}


def responses() -> Iterator[Any]:
    """The responses of all APIs in all versions."""
    for module in pkgutil.walk_packages(kio.schema.__path__, "kio.schema."):
        if module.name.endswith(".response"):
            name = module.name.split(".")[2].title().replace("_", "") + "Response"
            yield getattr(importlib.import_module(module.name), name)


def right_place(response: Any) -> int | None:
    """Where the field begins in a response of zeros from its correlation id on; None if it has none."""
    names = [field.name for field in dataclasses.fields(response)]
    if "throttle_time" not in names:
        return None
    before = names[: names.index("throttle_time")]
    flexible = response.__flexible__
    sizes = [1 if flexible and name == "responses" else SIZES[name] for name in before]
    return CORRELATION_ID_BYTES + int(flexible) + sum(sizes)


def found_place(response: type[Any], version: int) -> int | None:
    """Where the walk finds it."""
    assert version in response.VERSIONS
    start = walk_to_throttle(response, version)  # type: ignore[arg-type]  # mypy doubts that classes are hashable
    if start is None:
        return None
    frame = (
        bytes(CORRELATION_ID_BYTES) + (b"\0\1" if response.API_KEY == 0 and version >= 9 else b"") + bytes(40)
    )
    walking = Walking(start(CORRELATION_ID_BYTES), len(frame))
    walking.feed(memoryview(frame))
    return walking.wanted


def test_the_places_are_those_of_the_schemas() -> None:
    known = {**OTHER_RESPONSES, **DeclaredResponses()}
    wrong = []
    compared = set()
    for response in responses():
        key, version = response.__api_key__, response.__version__
        declared: Any = known.get(key)
        if key in OF_CONTROLLERS | LOCAL or declared is None or version < declared.VERSIONS.first:
            continue
        compared.add(key)
        if found_place(declared, version) != right_place(response):
            wrong.append(f"{response.__name__} v{version}")

    assert wrong == []
    assert compared >= known.keys() - {17, 18, 36, 93}  # kio does not have 93 yet
