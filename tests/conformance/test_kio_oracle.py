"""Every message in every version, compared with kio, an independent implementation generated from Kafka's
JSON files.

Random objects are encoded, decoded and encoded again by kio, and decoded here. ODRADEK_ORACLE_OBJECTS sets
how many per message and version (default 10). kio supports neither unknown tags, nor error codes beyond its
list, nor timestamps outside the calendar; such values are excluded here and covered by the property tests.

kio knows Kafka 4.3. `NEWER` lists the versions of Kafka 4.4: `test_golden_bytes.py` covers them, and so does
the comparison with Kafka's own schemas, `integration/java/test_message_schemas.py`.
"""

from __future__ import annotations

import importlib
import io
import os
import pkgutil
import random
import re
from typing import Any

from kio.serial import entity_reader, entity_writer

from odradek.wire import messages
from odradek.wire.codec import decode, encode
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from random_messages import MessageMaker, declared_versions
from support.offenders import offenders

OBJECTS = int(os.environ.get("ODRADEK_ORACLE_OBJECTS", "10"))
NEWER = {
    ("ApiVersions", 5),
    ("DeleteGroups", 3),
    ("StreamsGroupDescribe", 1),
    ("StreamsGroupHeartbeat", 1),
    ("StreamsGroupTopologyDescriptionUpdate", 0),
    ("TxnOffsetCommit", 6),
}
"""API and version; both its request and its response."""
CASES = [
    (cls, version)
    for cls, version in declared_versions()
    if (re.sub("(Request|Response)$", "", cls.__name__), version) not in NEWER
]


def kio_class(cls: type, version: int) -> Any:
    name = cls.__name__
    kind = {"Request": "request", "esponse": "response"}.get(name[-7:], "data")
    api = snake_case(re.sub("(Request|Response)$", "", name))
    return getattr(importlib.import_module(f"kio.schema.{api}.v{version}.{kind}"), name)


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def declared_modules() -> set[str]:
    """The modules of ``wire/messages``: one per API, and one for the payloads of consumers."""
    return {module.name for module in pkgutil.iter_modules(messages.__path__)}


def through_kio(entity: Any, data: bytes) -> bytes:
    value, size = entity_reader(entity)(data, 0)
    assert size == len(data)
    out = io.BytesIO()
    entity_writer(entity)(out, value)
    return out.getvalue()


def kio_agrees(cls: type, version: int) -> None:
    maker = MessageMaker(random.Random(f"{cls.__name__} {version}"), well_known=True)
    made = [maker.message(cls, version) for _ in range(OBJECTS)]
    for message in made:
        if isinstance(message, PushTelemetryRequest):  # null is read for librdkafka's sake, but never written
            message.metrics = message.metrics or b""
    entity = kio_class(cls, version)

    written = [encode(message, version) for message in made]

    assert [through_kio(entity, data).hex() for data in written] == [data.hex() for data in written]
    assert [decode(cls, version, data) for data in written] == made


def test_kio_reads_and_writes_the_same_bytes() -> None:
    assert offenders(kio_agrees, CASES) == {}


def is_in_kio(cls: type, version: int) -> bool:
    try:
        kio_class(cls, version)
    except ModuleNotFoundError:
        return False
    return True


def test_only_versions_that_kio_does_not_have_are_left_out() -> None:
    found = {
        (re.sub("(Request|Response)$", "", cls.__name__), version)
        for cls, version in declared_versions()
        if not is_in_kio(cls, version)
    }

    assert found == NEWER


def test_every_message_is_compared() -> None:
    names = {cls.__name__ for cls, _ in CASES}

    apis = {name.removesuffix("Request") for name in names if name.endswith("Request")}

    newer = {api for api, _ in NEWER}
    assert {snake_case(api) for api in apis | newer} | {"consumer_protocol"} == declared_modules()
    assert {name.removesuffix("Response") for name in names if name.endswith("Response")} == apis
    assert names - {f"{api}{kind}" for api in apis for kind in ("Request", "Response")} == {
        "ConsumerProtocolAssignment",
        "ConsumerProtocolSubscription",
    }
