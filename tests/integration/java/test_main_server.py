"""A run in the shared JVM ends and prints as it does in a JVM of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from integration.java.console_tools import MAIN_CLASSES, ConsoleTools
from integration.java.jvm import Jvm

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
NO_SERVER = ("--bootstrap-server", "127.0.0.1:1")


def without_frames(text: str) -> list[str]:
    """The lines of a stream, without those of a stack trace: ``main`` has more callers in the shared JVM."""
    return [line for line in text.splitlines() if not line.startswith("\tat ")]


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("kafka-topics", ("--version",)),
        ("kafka-topics", ("--bogus",)),
        ("kafka-configs", (*NO_SERVER, "--describe", "--entity-type", "bogus")),
        ("kafka-features", ("bogus",)),
        ("kafka-producer-perf-test", ()),
    ],
)
def test_status_and_streams_are_those_of_a_jvm_of_its_own(
    jvm: Jvm, script: str, arguments: tuple[str, ...]
) -> None:
    shared = jvm.run(MAIN_CLASSES[script], *arguments)
    apart = jvm.apart.run(MAIN_CLASSES[script], *arguments)

    assert shared.status == apart.status
    assert shared.out == apart.out
    assert without_frames(shared.err) == without_frames(apart.err)
    assert shared.said


def test_a_class_that_does_not_exist_ends_in_status_1(jvm: Jvm) -> None:
    run = jvm.run("odradek.Nothing")

    assert (run.status, run.out) == (1, "")
    assert "ClassNotFoundException: odradek.Nothing" in run.err


def test_a_run_starts_as_if_there_had_been_none_before(tools: ConsoleTools) -> None:
    for topic in ("turn-1", "turn-2"):
        tools.create_topic(topic)
        tools.produce_lines(topic, [topic] * 3)

        assert tools.consume_lines(topic, 3, "--from-beginning") == [topic] * 3


def test_runs_of_several_threads_take_turns(tools: ConsoleTools) -> None:
    topics = [f"thread-{number}" for number in range(4)]

    def there_and_back(topic: str) -> list[str]:
        tools.create_topic(topic)
        tools.produce_lines(topic, [topic] * 3)
        return tools.consume_lines(topic, 3, "--from-beginning")

    with ThreadPoolExecutor(len(topics)) as pool:
        read = list(pool.map(there_and_back, topics))

    assert read == [[topic] * 3 for topic in topics]
