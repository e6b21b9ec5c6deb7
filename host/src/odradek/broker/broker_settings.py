"""The settings of the broker itself, and the addresses that it tells its clients."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.broker.topics import MAX_PARTITIONS
from odradek.log.log_validator import DECOMPRESSED_BYTES
from odradek.settings.kinds import INT, Flag, Whole
from odradek.settings.setting import setting
from odradek.settings.state_limit import NAME_KEY
from odradek.wire.limits import INT16_MAX

SLOTS_KEY = "max.incremental.fetch.session.cache.slots"
PARTITIONS_KEY = "fetch.session.partitions.max"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address that clients are told to connect to."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """Settings of the broker itself."""

    # fmt: off
    node_id: int = setting("node.id", Whole(INT), 1, "Id of this broker in its cluster.")
    auto_create_topics_enable: bool = setting(
        "auto.create.topics.enable", Flag(), True,
        "Whether a request for a topic that does not exist creates the topic.",
    )
    num_partitions: int = setting(
        "num.partitions", Whole(INT, 1, MAX_PARTITIONS), 1,
        "Partitions of a topic that is created without a partition count.", unit="partitions",
    )
    fetch_max_bytes: int = setting(
        "fetch.max.bytes", Whole(INT, 1024), 57_671_680,
        "Largest response to a fetch request.", unit="bytes",
    )
    max_incremental_fetch_session_cache_slots: int = setting(
        SLOTS_KEY, Whole(INT), 1_000,
        "Incremental fetch sessions that are cached (KIP-227); a client without a session names all its "
        "partitions in every request.", unit="sessions",
    )
    request_turn_us: int = setting(
        "request.turn.us", Whole(INT, 100, 1_000_000), 500,
        "How long large requests may keep the event loop busy at a time; the rest of their work waits until "
        "the loop has served other clients.", unit="µs",
    )
    max_fetch_session_partitions: int = setting(
        PARTITIONS_KEY, Whole(INT), 500_000,
        "Most partitions in all fetch sessions together; a client that finds no room works without a "
        "session.", unit="partitions",
    )
    """Some 150 MB. Kafka has no such limit."""
    name_max_length: int = setting(
        NAME_KEY, Whole(INT, 64, INT16_MAX), 1_024,
        "Longest name that a client may choose for something that the host keeps, such as a client id, "
        "group id or user; beyond it POLICY_VIOLATION.", unit="characters",
    )
    response_max_bytes: int = setting(
        "response.max.bytes", Whole(INT, 1024), 33_554_432,
        "Largest response to a request that lists or describes things; a request for more is refused as "
        "POLICY_VIOLATION. Responses with records have `fetch.max.bytes`.", unit="bytes",
    )
    """Ten thousand topics with all their keys. Kafka has no bound."""
    produce_batch_max_records: int = setting(
        "produce.batch.max.records", Whole(INT, 1), 100_000,
        "Most records in one batch of a producer; more are refused as MESSAGE_TOO_LARGE, upon which Java "
        "producers split the batch.", unit="records",
    )
    """Kafka has no bound. The default is ten times the largest default batch of librdkafka."""
    produce_decompressed_max_bytes: int = setting(
        "produce.decompressed.max.bytes", Whole(INT, 1), DECOMPRESSED_BYTES,
        "What a compressed batch of a producer may open to, or 16 times `max.message.bytes` if that is more; "
        "beyond it MESSAGE_TOO_LARGE.", unit="bytes",
    )
    produce_inline_bytes: int = setting(
        "produce.inline.bytes", Whole(INT), 2 << 20,
        "Bytes of one request, decompressed, that are validated on the event loop; a worker process has the "
        "other batches. Without `odradek-speed` a record or a header counts as 200 bytes.", unit="bytes",
    )
    """At most ten milliseconds of work: a default batch of librdkafka, with and without odradek-speed."""
    max_topics: int = setting(
        "topics.max", Whole(INT, 1), 50_000, "Most topics.", unit="topics",
    )
    max_partitions: int = setting(
        "partitions.max", Whole(INT, 1), 100_000,
        "Most partitions of all topics together; each takes 5 kB of memory and a few files.",
        unit="partitions",
    )
    max_client_quotas: int = setting(
        "client.quotas.max", Whole(INT, 1), 50_000,
        "Most entities with quotas: users, client ids, addresses, and combinations of them.", unit="entities",
    )
    max_users: int = setting(
        "scram.users.max", Whole(INT, 1), 50_000, "Most users with SCRAM credentials.", unit="users",
    )
    # fmt: on
