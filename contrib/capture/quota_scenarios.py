"""Scenarios of client quotas, and of the quotas that are configuration of brokers and topics."""

from __future__ import annotations

from contrib.capture.broker_config_scenarios import BROKER, CLUSTER, NODE, TOPIC, change, show
from contrib.capture.golden import Recorder, Scenario
from contrib.capture.host_requests import request
from contrib.capture.kafka_requests import DELETE, SUBTRACT
from contrib.capture.topic_scenarios import DYNAMIC_IDS, create, delete_all, new

from odradek.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from odradek.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

PRODUCE, FETCH, TIME = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
CONNECTIONS = "connection_creation_rate"
ADDRESS = "1.2.3.4"
EXACT, DEFAULT, ANY = 0, 1, 2
Part = tuple[str, str | None]
Op = tuple[str, float | None]


def entry(parts: tuple[Part, ...], *ops: Op) -> RequestEntryData:
    """One entity; None removes a key."""
    return RequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in parts],
        ops=[OpData(key=key, value=value or 0, remove=value is None) for key, value in ops],
    )


def alter(
    say: Recorder, label: str, *entries: RequestEntryData, version: int = 1, validate_only: bool = False
) -> None:
    message = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    say.ask(label, request(message, version))


def describe(say: Recorder, label: str, *components: ComponentData, strict: bool = False) -> None:
    message = DescribeClientQuotasRequest(components=list(components), strict=strict)
    say.ask(label, request(message, 1))


def match(kind: str, how: int, name: str | None = None) -> ComponentData:
    return ComponentData(entity_type=kind, match_type=how, match=name)


def all_quotas(say: Recorder) -> None:
    describe(say, "all")


USER, CLIENT, BOTH = (("user", "u"),), (("client-id", "c"),), (("user", "u"), ("client-id", "c"))
IP, DEFAULT_IP = (("ip", ADDRESS),), (("ip", None),)
EVERYBODY = (USER, CLIENT, BOTH, (("user", None),), (("user", None), ("client-id", "c")))


def remove_all(say: Recorder) -> None:
    """Leave nothing to the scenarios that follow."""
    keys = tuple((key, None) for key in (PRODUCE, FETCH, TIME, "controller_mutation_rate"))
    alter(say, "remove all", *(entry(parts, *keys) for parts in EVERYBODY))
    alter(say, "remove addresses", *(entry(parts, (CONNECTIONS, None)) for parts in (IP, DEFAULT_IP)))
    all_quotas(say)


def altered(say: Recorder) -> None:
    alter(say, "two keys", entry(BOTH, (PRODUCE, 10_000), (FETCH, 20_000)), version=0)
    all_quotas(say)
    alter(say, "three at once", entry(BOTH, (PRODUCE, 20_000), (FETCH, None), (TIME, 12.3)))
    alter(say, "absent", entry(BOTH, (FETCH, None), ("unknown", None)))
    alter(say, "no keys", entry(USER))
    all_quotas(say)
    alter(say, "validateOnly", entry(BOTH, (PRODUCE, 1), (TIME, None)), validate_only=True)
    alter(say, "almost whole", entry(USER, (PRODUCE, 1235.0000001), (FETCH, 1e-7)))
    alter(say, "largest", entry(USER, (PRODUCE, 2.0**63), (TIME, 1e300)))
    alter(say, "no entries")
    alter(say, "addresses", entry(IP, (CONNECTIONS, 100)))
    alter(say, "default address", entry(DEFAULT_IP, (CONNECTIONS, 2147483647)))
    describe(say, "any address", match("ip", ANY), strict=True)
    describe(say, "this address", match("ip", EXACT, ADDRESS))
    remove_all(say)


def refused(say: Recorder) -> None:
    for label, parts, *ops in (
        ("empty user", (("user", ""),), (PRODUCE, 1)),
        ("empty client", (("client-id", ""),), (PRODUCE, 1)),
        ("empty type", (("", "x"),), (PRODUCE, 1)),
        ("another type", (("group", "x"),), (PRODUCE, 1)),
        ("no parts", (), (PRODUCE, 1)),
        ("user and address", (("user", "u"), ("ip", ADDRESS)), (CONNECTIONS, 1)),
        ("client and address", (("client-id", "c"), ("ip", ADDRESS)), (CONNECTIONS, 1)),
        ("blanks", (("ip", "has blanks in it"),), (CONNECTIONS, 1)),
        ("invalid host", (("ip", "RFC2606.invalid"),), (CONNECTIONS, 1)),
        ("empty address", (("ip", ""),), (CONNECTIONS, 1)),
        ("unknown key", USER, ("bad", 1)),
        ("key of addresses", USER, (CONNECTIONS, 1)),
        ("key of users", IP, (PRODUCE, 1)),
        ("zero", USER, (PRODUCE, 0)),
        ("negative", USER, (TIME, -2)),
        ("a fraction", USER, (PRODUCE, 10_000.5)),
        ("too large for a long", USER, (FETCH, 36893488147419103232.4)),
        ("too large for an int", IP, (CONNECTIONS, 2147483648)),
        ("a fraction of a connection", IP, (CONNECTIONS, 0.5)),
        ("infinity", USER, (PRODUCE, float("inf"))),
        ("a key twice", USER, (PRODUCE, 1), (PRODUCE, 2)),
    ):
        alter(say, label, entry(parts, *ops))
    all_quotas(say)
    alter(say, "an entity twice", entry(BOTH, (PRODUCE, 1)), entry(BOTH, (PRODUCE, 2)))
    alter(say, "a type twice", entry((("user", "other"), ("user", "u")), (FETCH, 3)))
    all_quotas(say)
    remove_all(say)


def described(say: Recorder) -> None:
    for number, parts in enumerate(EVERYBODY):
        alter(say, "one", entry(parts, (TIME, 50.5 + number)))
    for label, strict, *components in (
        ("u", False, match("user", EXACT, "u")),
        ("only u", True, match("user", EXACT, "u")),
        ("default user", False, match("user", DEFAULT)),
        ("only default user", True, match("user", DEFAULT)),
        ("any user", False, match("user", ANY)),
        ("any user only", True, match("user", ANY)),
        ("any user of client c", True, match("user", ANY), match("client-id", EXACT, "c")),
        ("unknown", False, match("user", EXACT, "x")),
        ("nothing", True),
        ("everything", False),
        ("empty name", False, match("user", EXACT, "")),
        ("empty type", False, match("", EXACT, "u")),
        ("another type", False, match("group", EXACT, "u")),
        ("a type twice", False, match("user", EXACT, "u"), match("user", ANY)),
        ("exactly null", False, match("user", EXACT)),
        ("default with a name", False, match("user", DEFAULT, "u")),
        ("any with a name", False, match("user", ANY, "u")),
        ("another match", False, match("user", 3, "u")),
        ("address and user", False, match("ip", ANY), match("user", ANY)),
    ):
        describe(say, label, *components, strict=strict)
    remove_all(say)


LISTENER = "listener.name.plaintext.max.connections"
SET_ON_BROKERS = (
    ("max.connections", "500"),
    ("max.connections.per.ip", " 400 "),
    ("max.connections.per.ip.overrides", "127.0.0.1:300,10.0.0.1:4"),
    ("max.connection.creation.rate", "900"),
    (LISTENER, "300"),
    ("leader.replication.throttled.rate", "1000"),
    ("follower.replication.throttled.rate", "0"),
    ("replica.alter.log.dirs.io.max.bytes.per.second", "3000"),
)


def brokers_altered(say: Recorder) -> None:
    keys = tuple(key for key, _ in SET_ON_BROKERS)
    for name in (CLUSTER, NODE):
        for key, value in SET_ON_BROKERS:
            change(say, BROKER, name, key, value)
        show(say, BROKER, name, *keys)
    for name in (NODE, CLUSTER):
        for key in keys:
            change(say, BROKER, name, key, None, DELETE)
        show(say, BROKER, name, *keys)


def brokers_refused(say: Recorder) -> None:
    for name in (CLUSTER, NODE):
        for key, value in (
            ("max.connections", "x"),
            ("max.connections", "-1"),
            ("max.connections", "2147483648"),
            (LISTENER, "0"),
            ("listener.name.plaintext.max.connection.creation.rate", "0"),
            ("max.connections.per.ip", "0"),
            ("max.connections.per.ip.overrides", "localhost"),
            ("max.connections.per.ip.overrides", "a b:3"),
            ("leader.replication.throttled.rate", "-1"),
            ("quota.window.num", "5"),
        ):
            change(say, BROKER, name, key, value)


def replicas(say: Recorder) -> None:
    say.note(DYNAMIC_IDS)
    key = "leader.replication.throttled.replicas"
    create(say, "a topic", new("q"))
    for value in ("*", "0:1,1:1", "", "0:1,,1:1", "0", "0:1:2", "a:b", "*,0:1"):
        change(say, TOPIC, "q", key, value)
        show(say, TOPIC, "q", key)
    change(say, TOPIC, "q", key, "0:1,1:1")
    change(say, TOPIC, "q", key, "0:1", SUBTRACT)
    show(say, TOPIC, "q", key)
    delete_all(say, "q")


SCENARIOS: dict[str, tuple[str, Scenario]] = {
    "alter_client_quotas_v1_altered": ("what can be set", altered),
    "alter_client_quotas_v1_refused": ("what cannot", refused),
    "describe_client_quotas_v1_described": ("filters", described),
    "incremental_alter_configs_v1_quotas": ("BROKER, quotas", brokers_altered),
    "incremental_alter_configs_v1_quotas_refused": ("BROKER, quotas that cannot be", brokers_refused),
    "incremental_alter_configs_v1_replicas": ("TOPIC, throttled replicas", replicas),
}
