"""Scenarios of ApiVersions and of CLIENT_METRICS configuration."""

from __future__ import annotations

from collections.abc import Iterable

from contrib.capture.golden import Recorder, Scenario
from contrib.capture.kafka_node import CLUSTER_ID
from contrib.capture.kafka_requests import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    Request,
    Resource,
    alter,
    api_versions,
    describe,
    replace,
    setting,
)

ALL_SELECTORS = (
    "client_instance_id=.*,client_id=.*,client_software_name=.*,client_software_version=.*,"
    "client_source_address=.*,client_source_port=.*"
)
DYNAMIC_FEATURES = "dynamic: the epoch of the finalized features; what is offered is Kafka's own list"

MATCHES = (
    "client_id=.*",
    ALL_SELECTORS,
    "10",
    "client_id",
    "unknown_param=foo",
    "CLIENT_ID=foo",
    "client_id=[unclosed",
    "client_id=a{1,3}",
    "client_id=a=b",
    "client_id==x",
    "client_id=abc=",
    "client_id=",
    "=foo",
    "=",
    " client_id = padded ",
    "client_id=(?!x).*",
    "client_id=(?<=x)y",
    r"client_id=(a)\1",
    "client_id=a++",
    "client_id=a,client_id=b",
    "client_id=a,client_id=a",
    "client_id=a,,client_source_port=1",
    "client_id=a,",
    "",
    " ",
)
METRICS = ("*", "a,b", "a,*", " a , b ", "a b", "a,a", "*,*", "a,,b", "a,", ",", "", " ", "Ä")
INTERVALS = (
    "100",
    "3600000",
    "99",
    "3600001",
    "0",
    "-1",
    "bbb",
    "",
    " 1000 ",
    "1e3",
    "100.0",
    "2147483648",
    "+500",
)


def change(key: str, operation: int, value: str | None, name: str = "sub-1") -> Resource:
    return Resource(name, ((key, operation, value),))


def api_versions_of(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        say.note(DYNAMIC_FEATURES)
        say.ask("what is offered", api_versions(version))
        say.ask("and again on the same connection", api_versions(version))

    return scenario


def expected_node(say: Recorder) -> None:
    """ApiVersions v5 of clients that expect a cluster, a node, or both."""
    say.note(DYNAMIC_FEATURES)
    known, other = CLUSTER_ID, "another-cluster"
    for label, cluster_id, node_id in (
        ("neither", None, -1),
        ("both", known, 1),
        ("another node", known, 2),
        ("another cluster", other, 1),
        ("another cluster and node", other, 2),
        ("the cluster alone", known, -1),
        ("another cluster alone", other, -1),
        ("the node alone", None, 1),
        ("another node alone", None, 2),
        ("an empty cluster", "", 1),
        ("node -2", known, -2),
        ("node -2 alone", None, -2),
    ):
        say.ask(label, api_versions(5, cluster_id=cluster_id, node_id=node_id))
        say.ask(f"{label}, then version 4", api_versions(4))
    say.ask("a bad name for another node", api_versions(5, "-x", cluster_id=known, node_id=2))
    say.ask("a bad name for a node alone", api_versions(5, "-x", node_id=2))


def unsupported_api_versions(say: Recorder) -> None:
    say.ask("version 99 with a body of version 3", Request(18, 99, api_versions(3).body))
    say.ask("the same connection steps down", api_versions(0))


def bad_software_names(say: Recorder) -> None:
    say.note(DYNAMIC_FEATURES)
    for name, version in (
        ("", "1.0"),
        ("capture", ""),
        ("-x", "1.0"),
        ("a b", "1.0"),
        ("x", "1.0!"),
        ("é", "1.0"),
    ):
        say.ask(f"name {name!r}, version {version!r}", api_versions(3, name, version))
    say.ask("a good name after them", api_versions(3))


def values(key: str, candidates: Iterable[str]) -> Scenario:
    """SET each value on a resource of its own, then describe it."""

    def scenario(say: Recorder) -> None:
        for number, value in enumerate(candidates):
            name = f"{key}-{number}"
            say.ask(f"SET {key} to {value!r}", alter(1, change(key, SET, value, name)))
            say.ask("describe", describe(4, Resource(name, keys=(key,))))

    return scenario


def set_and_delete(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        show = describe(version * 3 + 1, Resource("sub-1"))
        say.ask(
            "set all three",
            alter(version, setting("sub-1", metrics="a,b", interval_ms="1000", match="client_id=x")),
        )
        say.ask("describe", show)
        say.ask(
            "set them again",
            alter(version, setting("sub-1", metrics="a,b", interval_ms="1000", match="client_id=x")),
        )
        say.ask("delete one", alter(version, change("interval.ms", DELETE, None)))
        say.ask("delete it again", alter(version, change("interval.ms", DELETE, None)))
        say.ask("delete one with a value", alter(version, change("match", DELETE, "ignored")))
        say.ask("describe", show)
        say.ask("delete the last", alter(version, change("metrics", DELETE, None)))
        say.ask("describe", show)
        say.ask(
            "delete of a resource that never was", alter(version, change("metrics", DELETE, None, "never"))
        )
        say.ask("delete of an unknown key", alter(version, change("nonsense", DELETE, None)))

    return scenario


def append_and_subtract(say: Recorder) -> None:
    show = describe(4, Resource("sub-1"))
    say.ask("APPEND to nothing", alter(1, change("metrics", APPEND, "a")))
    say.ask("SUBTRACT from nothing", alter(1, change("metrics", SUBTRACT, "a")))
    say.ask("set", alter(1, setting("sub-1", metrics="a,b", match="client_id=x")))
    say.ask("APPEND c", alter(1, change("metrics", APPEND, "c")))
    say.ask("APPEND what is there", alter(1, change("metrics", APPEND, "a")))
    say.ask("SUBTRACT a", alter(1, change("metrics", SUBTRACT, "a")))
    say.ask("APPEND to match", alter(1, change("match", APPEND, "client_source_port=1")))
    say.ask("APPEND to interval.ms", alter(1, change("interval.ms", APPEND, "1000")))
    say.ask("APPEND to an unknown key", alter(1, change("nonsense", APPEND, "x")))
    say.ask("operation 9", alter(1, change("metrics", 9, "x")))
    say.ask("describe", show)


def refused(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        good = setting("good", metrics="*")
        say.ask("unknown key", alter(version, change("random", SET, "x")))
        say.ask("unknown key beside good ones", alter(version, change("random", SET, "x"), good))
        say.ask("one bad key of two", alter(version, setting("half", metrics="a", interval_ms="99")))
        say.ask("describe both", describe(4, Resource("half"), Resource("good")))
        say.ask(
            "duplicate resource",
            alter(version, setting("twice", metrics="a"), setting("twice", match="client_id=x"), good),
        )
        say.ask(
            "duplicate key", alter(version, Resource("sub-1", (("metrics", SET, "a"), ("metrics", SET, "b"))))
        )
        say.ask("null value on SET", alter(version, change("metrics", SET, None)))
        nulls = (("metrics", SET, None), ("match", APPEND, None))
        say.ask("two null values", alter(version, Resource("sub-1", nulls)))
        say.ask("empty name", alter(version, change("metrics", SET, "*", "")))
        say.ask("no changes", alter(version, Resource("sub-1")))
        say.ask("no resources", alter(version))
        say.ask("resource type 124", alter(version, Resource("sub-1", (("metrics", SET, "*"),), kind=124)))
        say.ask("describe", describe(4, Resource("sub-1")))

    return scenario


def names(say: Recorder) -> None:
    """Which names may a subscription have?"""
    for name in ("with space", "a/b", "ä", ".", "x" * 300, "a,b"):
        say.ask(f"name {name[:20]!r}", alter(1, change("interval.ms", SET, "1000", name)))
        say.ask("describe", describe(4, Resource(name, keys=("interval.ms",))))


def validate_only(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        good = setting("sub-1", metrics="*", interval_ms="1000")
        say.ask("a good change, validateOnly", alter(version, good, validate_only=True))
        say.ask(
            "a bad change, validateOnly", alter(version, change("interval.ms", SET, "1"), validate_only=True)
        )
        say.ask("describe", describe(4, Resource("sub-1")))

    return scenario


def look_ahead_stays(say: Recorder) -> None:
    """A match only java.util.regex accepts, changed and left alone."""
    say.ask("look-ahead", alter(1, setting("sub-1", match="client_id=(?!x).*", interval_ms="1000")))
    say.ask("change something else", alter(1, change("interval.ms", SET, "2000")))
    say.ask("describe", describe(4, Resource("sub-1")))


def legacy(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        show = describe(4, Resource("sub-1"))
        say.ask("replace nothing", replace(version, setting("sub-1", metrics="a", interval_ms="1000")))
        say.ask("describe", show)
        say.ask("replace by match only", replace(version, setting("sub-1", match="client_id=x")))
        say.ask("describe", show)
        say.ask("interval.ms=bbb", replace(version, setting("sub-1", interval_ms="bbb")))
        say.ask("unknown key", replace(version, change("random", SET, "x")))
        say.ask("null value", replace(version, change("metrics", SET, None)))
        say.ask("empty name", replace(version, setting("", metrics="*")))
        say.ask("validateOnly", replace(version, setting("sub-1", metrics="b"), validate_only=True))
        say.ask("describe", show)
        say.ask("replace by nothing", replace(version, Resource("sub-1")))
        say.ask("describe", show)

    return scenario


def legacy_duplicate_resource(say: Recorder) -> None:
    say.ask("duplicate resource", replace(2, setting("x", metrics="a"), setting("x", metrics="b")))


def legacy_duplicate_key(say: Recorder) -> None:
    say.ask("duplicate key", replace(2, Resource("x", (("metrics", SET, "a"), ("metrics", SET, "b")))))
    say.ask("describe", describe(4, Resource("x")))


def described(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        def ask(
            label: str, *resources: Resource, synonyms: bool = False, documentation: bool = False
        ) -> None:
            say.ask(label, describe(version, *resources, synonyms=synonyms, documentation=documentation))

        say.ask("set two of three", alter(1, setting("sub-1", metrics="a, b", match="client_id=x")))
        ask("all keys", Resource("sub-1"))
        ask("synonyms", Resource("sub-1"), synonyms=True)
        if version >= 3:
            ask("documentation", Resource("sub-1"), documentation=True)
        ask("one key", Resource("sub-1", keys=("interval.ms",)))
        ask("two keys in another order", Resource("sub-1", keys=("match", "metrics")))
        ask("an unknown key", Resource("sub-1", keys=("nonsense",)))
        ask("an empty list of keys", Resource("sub-1", keys=()))
        ask("unknown name", Resource("never"))
        ask("empty name", Resource(""))
        ask("twice the same, and another", Resource("sub-1"), Resource("sub-1"), Resource("never"))
        ask("no resources")

    return scenario


def described_null_name(say: Recorder) -> None:
    request = describe(4, Resource("x"))
    say.ask("null name", Request(32, 4, request.body.replace(b"\x02x", b"\0")))


def described_types(say: Recorder) -> None:
    """Types DescribeConfigs does not know."""
    for kind in (0, 1, 99):
        say.ask(f"resource type {kind}", describe(4, Resource("x", kind=kind)))


SCENARIOS: dict[str, tuple[str, Scenario]] = {
    **{
        f"api_versions_v{version}_offered": ("what a node offers", api_versions_of(version))
        for version in range(5)
    },
    "api_versions_v99_unsupported": ("a version from the future", unsupported_api_versions),
    "api_versions_v3_software_names": ("names and versions Kafka does not like", bad_software_names),
    "describe_configs_v1_client_metrics": ("CLIENT_METRICS, the oldest version", described(1)),
    "describe_configs_v4_client_metrics": ("CLIENT_METRICS, the newest version", described(4)),
    "describe_configs_v4_null_name": ("a null where none is allowed", described_null_name),
    "describe_configs_v4_types": ("unknown resource types", described_types),
    "incremental_alter_configs_v0_set_and_delete": ("SET and DELETE", set_and_delete(0)),
    "incremental_alter_configs_v1_set_and_delete": ("SET and DELETE", set_and_delete(1)),
    "incremental_alter_configs_v1_append": ("APPEND and SUBTRACT", append_and_subtract),
    "incremental_alter_configs_v0_refused": ("what is refused", refused(0)),
    "incremental_alter_configs_v1_refused": ("what is refused", refused(1)),
    "incremental_alter_configs_v1_names": ("odd names of subscriptions", names),
    "incremental_alter_configs_v1_match": (
        "each value of match on its own resource",
        values("match", MATCHES),
    ),
    "incremental_alter_configs_v1_metrics": (
        "each value of metrics on its own resource",
        values("metrics", METRICS),
    ),
    "incremental_alter_configs_v1_interval": (
        "each value of interval.ms on its own",
        values("interval.ms", INTERVALS),
    ),
    "incremental_alter_configs_v1_look_ahead": ("a pattern RE2 does not know", look_ahead_stays),
    "incremental_alter_configs_v0_validate_only": ("nothing is stored", validate_only(0)),
    "incremental_alter_configs_v1_validate_only": ("nothing is stored", validate_only(1)),
    "alter_configs_v1_replace": ("the legacy API replaces everything", legacy(1)),
    "alter_configs_v2_replace": ("the legacy API replaces everything", legacy(2)),
    "alter_configs_v2_duplicate_resource": ("the same resource twice", legacy_duplicate_resource),
    "alter_configs_v2_duplicate_key": ("the same key twice", legacy_duplicate_key),
}

SINCE_4_4: dict[str, tuple[str, Scenario]] = {
    "api_versions_v5_offered": ("what a node offers", api_versions_of(5)),
    "api_versions_v5_expected_node": ("a cluster and a node that the client expects", expected_node),
}
WITHOUT_RECEIVER: dict[str, tuple[str, Scenario]] = {
    "api_versions_v3_without_receiver": ("the telemetry APIs are hidden", api_versions_of(3)),
}


def read_uvarint(data: bytes, at: int) -> tuple[int, int]:
    """The number at ``at`` and where the next field starts."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def deletion(listed: bytes) -> Request | None:
    """Deletes every subscription a ListConfigResources v0 response names; None when there is none."""
    count, at = read_uvarint(listed, 1 + 4 + 2)
    found = []
    for _ in range(count - 1):
        length, at = read_uvarint(listed, at)
        found.append(listed[at : at + length - 1].decode())
        at += length
    changes = tuple((key, DELETE, None) for key in ("metrics", "interval.ms", "match"))
    return alter(1, *(Resource(name, changes) for name in found)) if found else None
