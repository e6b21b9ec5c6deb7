"""Subscriptions by name: which metrics to ask clients for, and the questions that these answer.

A preset is a list of questions, and a question a list of prefixes of metric names. What a preset feeds and
what it costs follow from it: ``reference/presets.md`` has both, from the alerts, the charts and the recorded
pushes of real clients.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from odradek.findings.client_metrics import ADMIN, PREFIX
from odradek.findings.troubles import CONSUMER, COORDINATOR, FETCH, PRODUCER, SHARE

ADMIN_CLIENT: Final = f"{PREFIX}{ADMIN}."
STREAMS: Final = PREFIX + "stream."
OBSERVED: Final = "io.odradek.observed.client."
"""Metrics that a gateway or a host derives for clients that do not push."""
EVERYTHING: Final = "*"
KEY: Final = "preset"
"""The key of a table ``[subscriptions.NAME]`` in a file."""
METRICS: Final = "metrics"
INTERVAL_MS: Final = "interval.ms"


class UnknownPreset(ValueError):
    """There is no preset of this name, or it is given beside metrics. The text says what was expected."""


class Question(NamedTuple):
    """What some metrics tell."""

    text: str
    prefixes: tuple[str, ...]
    """Of metric names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A subscription that has a name."""

    id: str
    use: str
    """When to use it, in one sentence."""
    questions: tuple[Question, ...]
    interval_ms: int = 60_000
    """The push interval. The windows of the alert rules fit 60 s."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """The prefixes of the subscription: each once, and none that begins with another."""
        found = dict.fromkeys(prefix for question in self.questions for prefix in question.prefixes)
        return tuple(each for each in found if not selects([other for other in found if other != each], each))

    @property
    def properties(self) -> dict[str, str]:
        """The properties of the subscription, as Kafka stores them."""
        return {METRICS: ",".join(self.metrics), INTERVAL_MS: str(self.interval_ms)}


def selects(prefixes: Iterable[str], name: str) -> bool:
    """Whether a subscription with these prefixes selects a metric."""
    given = tuple(prefixes)
    return EVERYTHING in given or name.startswith(given)


def roles(*names: str, of: tuple[str, ...] = (PRODUCER, CONSUMER)) -> tuple[str, ...]:
    """The same metrics of several roles."""
    return tuple(role + name for name in names for role in of)


def under(role: str, *names: str) -> tuple[str, ...]:
    """Metrics of one role."""
    return roles(*names, of=(role,))


def only(role: str, *questions: Question) -> tuple[Question, ...]:
    """Questions with their metrics of one role, and those that ask nobody for a push."""
    wanted = role, OBSERVED
    return tuple(
        Question(text, tuple(each for each in prefixes if each.startswith(wanted)))
        for text, prefixes in questions
    )


BROKERS = Question("Which client waits long for which broker?", roles("node.request.latency."))
CONNECTIONS = Question(
    "Which client connects again and again, or cannot log in?",
    roles("connection.creation.total", "failed.authentication.total", of=(PRODUCER, CONSUMER, ADMIN_CLIENT)),
)
THROTTLED = Question(
    "Which client is throttled by a quota?",
    (PRODUCER + "produce.throttle.time.", FETCH + "fetch.throttle.time."),
)
SENT = Question(
    "Are records sent, sent again, or lost?",
    (
        *under(PRODUCER, "record.send.total", "record.retry.total", "record.error.total"),
        OBSERVED + "produce.records",
    ),
)
BUFFER = Question(
    "Is the producer's buffer full, and how long do records wait in it?",
    under(PRODUCER, "buffer.", "record.queue.time."),
)
GROUP = Question(
    "Does a group rebalance again and again, and is it even?",
    under(COORDINATOR, "rebalance.", "failed.rebalance.total", "assigned.partitions"),
)
COMMITS = Question("Do commits of offsets take long?", under(COORDINATOR, "commit.latency."))
LAG = Question(
    "Does the lag grow, of which partition?", under(FETCH, "records.lag", "records.consumed.total")
)
CAUSE_OF_LAG = Question(
    "Is the application slow, or are fetches?",
    (
        *under(CONSUMER, "poll.idle.ratio.avg", "time.between.poll."),
        *under(FETCH, "fetch.latency.", "fetch.rate"),
    ),
)
NOT_PUSHED = Question(
    "What fails, waits or is cut off for clients that do not push?",
    under(OBSERVED, "errors", "throttle.time", "disconnects"),
)
ESSENTIAL = (
    BROKERS,
    CONNECTIONS,
    THROTTLED,
    SENT,
    BUFFER,
    GROUP,
    COMMITS,
    LAG,
    CAUSE_OF_LAG,
    NOT_PUSHED,
)
VOLUME = ("incoming.byte.", "outgoing.byte.", "request.rate", "request.total", "connection.")

PRESETS: Final[Mapping[str, Preset]] = MappingProxyType(
    {
        each.id: each
        for each in (
            Preset(
                id="essential",
                use="For all clients, all the time: what the alerts need, and little more.",
                questions=ESSENTIAL,
            ),
            Preset(
                id="consumer",
                use="For consumers whose lag or group matters to you.",
                questions=(
                    *only(CONSUMER, BROKERS, CONNECTIONS, THROTTLED, LAG, CAUSE_OF_LAG, NOT_PUSHED),
                    Question("How much does each consumer read, of which topic?", (FETCH,)),
                    Question("How does its group get on: joins, heartbeats, callbacks?", (COORDINATOR,)),
                    Question(
                        "Where does the application spend its time?",
                        under(CONSUMER, "last.poll.", "commit.sync.", "committed."),
                    ),
                    Question("How does a share consumer get on: fetches, acknowledgements?", (SHARE,)),
                    Question("How much goes over its connections?", under(CONSUMER, *VOLUME)),
                ),
            ),
            Preset(
                id="producer",
                use="For producers whose throughput or losses matter to you.",
                questions=(
                    *only(PRODUCER, BROKERS, CONNECTIONS, THROTTLED, SENT, BUFFER, NOT_PUSHED),
                    Question("How much does each producer send, to which topic?", under(PRODUCER, "topic.")),
                    Question(
                        "Are batches well filled and compressed?",
                        under(PRODUCER, "batch.", "record.", "records.per.request.", "compression."),
                    ),
                    Question(
                        "Where do sends wait: for memory, metadata, brokers, transactions?",
                        under(
                            PRODUCER,
                            "bufferpool.",
                            "waiting.threads",
                            "metadata.",
                            "flush.",
                            "txn.",
                            "request.latency.",
                            "requests.in.flight",
                        ),
                    ),
                    Question("How much goes over its connections?", under(PRODUCER, *VOLUME)),
                ),
            ),
            Preset(
                id="streams",
                use="For applications of Kafka Streams, whose consumers and admin client send these.",
                questions=(
                    *ESSENTIAL,
                    Question("Which thread, task or store of Kafka Streams is slow or fails?", (STREAMS,)),
                ),
            ),
            Preset(
                id="debug",
                use="For a few clients, for a while: all that Kafka's libraries measure.",
                questions=(
                    Question("What else do clients measure?", (PREFIX,)),
                    Question("What passes between a client and its brokers?", (OBSERVED,)),
                ),
                interval_ms=10_000,
            ),
            Preset(
                id="all",
                use="For tests and demos: also metrics of applications and of other vendors.",
                questions=(Question("Is there anything else?", (EVERYTHING,)),),
            ),
        )
    }
)
"""By name, the one for all clients first."""


def presets_for(names: Collection[str]) -> list[str]:
    """The presets with fewest metrics that ask for all of these: one for producers, one for consumers.

    Admin clients, of which nothing but ``debug`` asks much, count only if there is nobody else.
    """
    wanted = {role: [each for each in names if each.startswith(role)] for role in (PRODUCER, CONSUMER)}
    by_role = [each for each in wanted.values() if each] or [list(names)]
    found = {
        next(each.id for each in PRESETS.values() if all(selects(each.metrics, name) for name in some))
        for some in by_role
    }
    return [name for name in PRESETS if name in found]


def listed(metrics: str) -> tuple[str, ...]:
    """The prefixes in the metrics of a stored subscription, which have commas between them."""
    return tuple(each.strip() for each in metrics.split(",") if each.strip())


def prefixes_of(text: str) -> tuple[str, ...]:
    """The prefixes that a person asks for: those of a preset by its name, or a list with commas."""
    preset = PRESETS.get(text.strip())
    return preset.metrics if preset else listed(text)


def metrics_text(metrics: str) -> str:
    """The metrics of a stored subscription for people: the name of a preset if they are the same."""
    found = listed(metrics)
    return next((name for name, each in PRESETS.items() if {*each.metrics} == {*found}), ", ".join(found))


def expanded(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of a subscription whose key ``preset`` stands for its metrics and its interval.

    Raises:
        UnknownPreset: There is no such preset, or the subscription has metrics beside it.
    """
    given = dict(properties)
    name = given.pop(KEY, None)
    if name is None:
        return given
    if name not in PRESETS:
        raise UnknownPreset(f"expected one of {', '.join(PRESETS)}, found {name!r}")
    if METRICS in given:
        raise UnknownPreset(f"expected either {KEY} or {METRICS}, found both")
    return PRESETS[name].properties | given
