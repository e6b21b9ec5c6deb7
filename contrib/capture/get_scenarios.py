"""Scenarios of GetTelemetrySubscriptions."""

from __future__ import annotations

import struct

from contrib.capture.golden import Recorder, Scenario
from contrib.capture.kafka_requests import alter, api_versions, get_subscriptions, setting

NIL = bytes(16)
RESERVED = bytes(15) + b"\1"
INSTANCE = bytes.fromhex("4e6fb54cb8e64517889be15b99c09c20")
OTHER_INSTANCE = bytes.fromhex("b69cc35a7a544790aa69cc2bd4ee4538")
TWO_PREFIXES = (
    "org.apache.kafka.client.producer.partition.queue.,org.apache.kafka.client.producer.partition.latency"
)
FOURTEEN_NAMES = ",".join(f"org.apache.kafka.m{number}" for number in range(14))
DYNAMIC_ID = "dynamic: the client instance id, and the subscription id, which depends on it"


def subscription_id(response: bytes) -> int:
    """Of a GetTelemetrySubscriptions response: after tags, throttle time, error code and instance id."""
    return int(struct.unpack_from(">i", response, 1 + 4 + 2 + 16)[0])


def joined(say: Recorder, client_instance_id: bytes = INSTANCE) -> int:
    """Get a subscription and return its id."""
    return subscription_id(say.ask("first handshake", get_subscriptions(client_instance_id)))


def get_again(say: Recorder) -> None:
    say.ask("get at once", get_subscriptions(INSTANCE))


def get_nil_id(say: Recorder) -> None:
    say.note(DYNAMIC_ID)
    say.ask("nil id: the broker draws one", get_subscriptions(NIL))
    say.ask("nil id again on the same connection: another one, not throttled", get_subscriptions(NIL))


def get_own_id(say: Recorder) -> None:
    say.ask("an id the broker never gave, no subscription exists", get_subscriptions(INSTANCE))
    get_again(say)


def get_reserved_id(say: Recorder) -> None:
    say.ask("the reserved id 0:1", get_subscriptions(RESERVED))


def get_subscribed(say: Recorder) -> None:
    say.ask("subscribe", alter(1, setting("sub-1", metrics=TWO_PREFIXES, interval_ms="30000")))
    joined(say)
    get_again(say)
    say.ask("another instance", get_subscriptions(OTHER_INSTANCE))


def get_wildcard(say: Recorder) -> None:
    say.ask("two prefixes", alter(1, setting("sub-1", metrics=TWO_PREFIXES, interval_ms="30000")))
    say.ask("and everything, less often", alter(1, setting("sub-2", metrics="*", interval_ms="60000")))
    joined(say)


def get_many_names(say: Recorder) -> None:
    say.ask("fourteen names", alter(1, setting("sub-1", metrics=FOURTEEN_NAMES, interval_ms="5000")))
    joined(say)


def get_empty_prefix(say: Recorder) -> None:
    say.ask("no metrics, an interval", alter(1, setting("sub-1", interval_ms="1000")))
    joined(say)


def get_interval_cap(say: Recorder) -> None:
    say.ask("one hour", alter(1, setting("sub-1", metrics="*", interval_ms="3600000")))
    joined(say)


def get_changed(say: Recorder) -> None:
    joined(say)
    say.ask("a new subscription", alter(1, setting("sub-1", metrics="*")))
    get_again(say)
    get_again(say)


def get_matched(say: Recorder) -> None:
    say.note("dynamic: the epoch of the finalized features; what ApiVersions offers is Kafka's own list")
    say.ask("who I am", api_versions(3, "apache-kafka-java", "4.3.1"))
    software = r"client_software_name=apache-.*,client_software_version=4\..*"
    say.ask("software", alter(1, setting("a", metrics="software.", match=software)))
    say.ask("client id", alter(1, setting("b", metrics="client.id.", match="client_id=cap.*")))
    encoded = "client_instance_id=Tm-1TLjmRReIm-FbmcCcIA"
    say.ask("instance id", alter(1, setting("c", metrics="instance.id.", match=encoded)))
    say.ask(
        "address", alter(1, setting("d", metrics="address.", match=r"client_source_address=127\.0\.0\.1"))
    )
    say.ask("port", alter(1, setting("e", metrics="port.", match=r"client_source_port=[0-9]+")))
    say.ask("part of the client id", alter(1, setting("f", metrics="not.anchored.", match="client_id=capt")))
    say.ask("other case", alter(1, setting("g", metrics="case.", match="client_id=CAPTURE")))
    say.ask(
        "one of two", alter(1, setting("h", metrics="half.", match="client_id=capture,client_source_port=x"))
    )
    say.ask(
        "the last of one key counts",
        alter(1, setting("i", metrics="last.", match="client_id=x,client_id=capture")),
    )
    joined(say)


def get_unknown_software(say: Recorder) -> None:
    say.note("ApiVersions was not sent on this connection")
    say.ask("unknown", alter(1, setting("a", metrics="unknown.", match="client_software_name=unknown")))
    say.ask("any version", alter(1, setting("b", metrics="any.", match="client_software_version=.*")))
    joined(say)


SCENARIOS: dict[str, tuple[str, Scenario]] = {
    "get_telemetry_subscriptions_v0_nil_id": ("no id yet, no subscription", get_nil_id),
    "get_telemetry_subscriptions_v0_own_id": (
        "an id of the client's own making; immediate retry",
        get_own_id,
    ),
    "get_telemetry_subscriptions_v0_reserved_id": ("the id Kafka never draws", get_reserved_id),
    "get_telemetry_subscriptions_v0_subscribed": ("one subscription; immediate retry", get_subscribed),
    "get_telemetry_subscriptions_v0_wildcard": (
        "a wildcard swallows prefixes, the shortest interval wins",
        get_wildcard,
    ),
    "get_telemetry_subscriptions_v0_many_names": ("order of the requested metrics", get_many_names),
    "get_telemetry_subscriptions_v0_interval_only": (
        "a subscription to no metric lowers the interval",
        get_empty_prefix,
    ),
    "get_telemetry_subscriptions_v0_interval_cap": ("an interval above five minutes", get_interval_cap),
    "get_telemetry_subscriptions_v0_changed": ("a changed subscription opens the gate once", get_changed),
    "get_telemetry_subscriptions_v0_matched": ("every selector", get_matched),
    "get_telemetry_subscriptions_v0_unknown_software": (
        "a client that never introduced itself",
        get_unknown_software,
    ),
}
