"""The topics of a topology: missing ones, numbers of partitions, numbers of tasks (KIP-1071)."""

from __future__ import annotations

import pytest

from odradek.group.streams_topics import ConfiguredTopology, StatusCode, configured, required_topics
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.streams_group_heartbeat import CopartitionGroup, Subtopology, TopicInfo, Topology


def word_count(**fields: object) -> Topology:
    """Reads ``in``, repartitions, and counts."""
    declared: dict[str, object] = {
        "source_topics": ["in"],
        "repartition_sink_topics": ["words"],
    }
    return Topology(
        epoch=1,
        subtopologies=[
            Subtopology(subtopology_id="0", **(declared | fields)),  # type: ignore[arg-type]
            Subtopology(
                subtopology_id="1",
                repartition_source_topics=[TopicInfo(name="words")],
                state_changelog_topics=[TopicInfo(name="counts")],
            ),
        ],
    )


def against(topology: Topology, **topics: int) -> ConfiguredTopology:
    return configured(topology, lambda name: topics.get(name, 0))


def test_internal_topics_get_the_partitions_of_what_is_upstream() -> None:
    found = against(word_count(), **{"in": 3})

    assert {name: found.counts[name] for name in found.missing} == {"words": 3, "counts": 3}
    assert found.problem == (
        StatusCode.MISSING_INTERNAL_TOPICS,
        "Internal topics are missing: counts, words",
    )
    assert not found.is_ready


def test_a_topology_whose_topics_exist_is_ready() -> None:
    found = against(word_count(), **{"in": 3, "words": 3, "counts": 3})

    assert found.is_ready
    assert found.tasks == {"0": 3, "1": 3}
    assert found.stateful == {"1"}


def test_a_subtopology_has_a_task_for_each_partition_of_its_largest_source() -> None:
    topology = Topology(subtopologies=[Subtopology(subtopology_id="0", source_topics=["two", "five"])])

    assert against(topology, two=2, five=5).tasks == {"0": 5}


def test_a_changelog_that_is_a_source_topic_is_not_created() -> None:
    source = Subtopology(
        subtopology_id="0", source_topics=["table"], state_changelog_topics=[TopicInfo(name="table")]
    )

    assert against(Topology(subtopologies=[source]), table=4).is_ready


def test_the_status_names_three_missing_source_topics() -> None:
    found = against(word_count(source_topics=["e", "d", "c", "b", "a"]), c=1)

    assert found.problem == (
        StatusCode.MISSING_SOURCE_TOPICS,
        "Source topics a, b, d and 1 additional topics are missing.",
    )
    assert found.tasks == {}


def test_a_declared_number_of_partitions_counts() -> None:
    topology = word_count()
    topology.subtopologies[1].repartition_source_topics[0].partitions = 7

    found = against(topology, **{"in": 3})

    assert {name: found.counts[name] for name in found.missing} == {"words": 7, "counts": 7}


def test_an_internal_topic_with_other_partitions_is_told() -> None:
    found = against(word_count(), **{"in": 3, "words": 2, "counts": 3})

    assert found.problem == (
        StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
        "Existing topic words has different number of partitions: expected 3, found 2",
    )


def join(*sources: str, repartitions: tuple[TopicInfo, ...] = ()) -> Topology:
    """Joins topics, which must have equally many partitions."""
    joined = Subtopology(
        subtopology_id="1",
        source_topics=list(sources),
        repartition_source_topics=list(repartitions),
        copartition_groups=[
            CopartitionGroup(
                source_topics=list(range(len(sources))),
                repartition_source_topics=list(range(len(repartitions))),
            )
        ],
    )
    upstream = [
        Subtopology(
            subtopology_id=f"0{topic.name}", source_topics=["up"], repartition_sink_topics=[topic.name]
        )
        for topic in repartitions
    ]
    return Topology(subtopologies=[*upstream, joined])


def test_joined_topics_with_different_partitions_are_told() -> None:
    found = against(join("foo", "bar"), foo=6, bar=3)

    assert found.problem == (
        StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
        "Following topics do not have the same number of partitions: [{bar=3, foo=6}]",
    )


def test_a_repartition_topic_takes_the_partitions_of_the_topic_it_is_joined_with() -> None:
    found = against(join("foo", repartitions=(TopicInfo(name="re"),)), foo=6, up=2)

    assert found.counts["re"] == 6


def test_joined_repartition_topics_take_the_larger_number() -> None:
    topology = join(repartitions=(TopicInfo(name="a"), TopicInfo(name="b")))
    topology.subtopologies[1].source_topics = ["wide"]

    found = against(topology, up=2, wide=5)

    assert {name: found.counts[name] for name in found.missing} == {"a": 5, "b": 5}


def test_a_declared_number_that_does_not_fit_a_join_is_told() -> None:
    found = against(join("foo", repartitions=(TopicInfo(name="re", partitions=4),)), foo=6, up=2)

    assert found.problem == (
        StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
        "Number of partitions [4] of repartition topic [re] doesn't match number of partitions [6] of the "
        "source topic.",
    )


@pytest.mark.parametrize(
    ("topology", "said"),
    [
        (
            Topology(subtopologies=[Subtopology(subtopology_id="9")]),
            "No source topics found for subtopology 9",
        ),
        (word_count(repartition_sink_topics=[]), "is never used as a sink topic"),
        (
            Topology(
                subtopologies=[
                    Subtopology(
                        subtopology_id="0",
                        repartition_source_topics=[TopicInfo(name="round")],
                        repartition_sink_topics=["round"],
                    )
                ]
            ),
            "There may be loops in the topology",
        ),
        (
            Topology(
                subtopologies=[
                    Subtopology(
                        subtopology_id="0",
                        source_topics=["in"],
                        copartition_groups=[CopartitionGroup(source_topics=[1])],
                    )
                ]
            ),
            "Copartition groups of subtopology 0 name topics that it does not have",
        ),
    ],
)
def test_a_topology_that_no_topics_could_fit_is_refused(topology: Topology, said: str) -> None:
    with pytest.raises(ApiError, match=said) as refusal:
        against(topology, **{"in": 1})

    assert refusal.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_the_required_topics_are_those_that_it_reads_and_those_with_its_state() -> None:
    assert required_topics(word_count()) == {"in", "words", "counts"}
