"""``odradek produce``, ``consume``, ``get-offsets`` and ``delete-records`` print what Kafka's tools print.

With ``ODRADEK_TEST_PEER`` both run against Apache Kafka.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.java.console_tools import ConsoleTools
from support.tools import Done, command_line

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
Odradek = Callable[..., Done]
READER = [
    text
    for each in (
        "parse.key=true",
        "key.separator=:",
        "parse.headers=true",
        "headers.delimiter=|",
        "null.marker=NULL",
    )
    for text in ("--reader-property", each)
]
LINES = ["h1:v1,h2:NULL|k1:v1", "NULL|NULL:NULL", "h:|k2:a:b|c", *(f"n:{n}|key-{n}:{n}" for n in range(20))]
PRINTED = [
    text
    for name in ("timestamp", "partition", "offset", "headers", "key")
    for text in ("--formatter-property", f"print.{name}=true")
]
ALL = ("--from-beginning", "--max-messages", str(len(LINES)), "--timeout-ms", "20000")


@pytest.fixture
def odradek(
    tools: ConsoleTools, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Odradek:
    """Runs a command of ours against the broker of the tools."""

    def run(command: str, *arguments: str, stdin: str = "") -> Done:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        return command_line(tools.bootstrap, command, capsys)(*arguments)

    return run


def test_both_producers_write_the_same_records(tools: ConsoleTools, odradek: Odradek) -> None:
    tools.create_topic("by-kafka", 4)
    tools.create_topic("by-odradek", 4)
    lines = [line for line in LINES if "NULL:" not in line]

    tools.produce_lines("by-kafka", lines, *READER)
    odradek("produce", "--topic", "by-odradek", *READER, stdin="\n".join(lines))

    count = ("--from-beginning", "--max-messages", str(len(lines)), "--timeout-ms", "20000", "--json")
    theirs, ours = (
        sorted(
            ({**json.loads(line), "topic": "", "timestamp_ms": 0, "offset": 0} for line in read.out),
            key=lambda row: str(row["key"]),
        )
        for read in (odradek("consume", "--topic", topic, *count) for topic in ("by-kafka", "by-odradek"))
    )
    assert len(theirs) == len(lines)
    assert ours == theirs


def test_both_consumers_print_the_same_lines(tools: ConsoleTools, odradek: Odradek) -> None:
    tools.create_topic("printed")
    odradek("produce", "--topic", "printed", *READER, stdin="\n".join(LINES))

    theirs = tools.run("kafka-console-consumer", "--topic", "printed", *ALL, *PRINTED)
    ours = odradek("consume", "--topic", "printed", *ALL, *PRINTED)

    assert ours.out == [line for line in theirs.out.splitlines() if line.startswith("CreateTime:")]
    assert len(ours.out) == len(LINES)
    assert ours.err == [f"Processed a total of {len(LINES)} messages"]
    assert ours.err[0] in theirs.err


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("abc", READER[:4]),
        ("abc", READER),
        ("h|k:v", READER),
    ],
    ids=["no key", "no headers", "no header key"],
)
def test_a_malformed_line_is_refused_with_the_words_of_the_tool(
    tools: ConsoleTools, odradek: Odradek, line: str, arguments: list[str]
) -> None:
    theirs = tools.run("kafka-console-producer", "--topic", "malformed", *arguments, stdin=f"{line}\n")
    ours = odradek("produce", "--topic", "malformed", *arguments, stdin=f"{line}\n")

    assert theirs.status == ours.status == 1
    assert ours.err[0].removeprefix("odradek produce: ") in theirs.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--topic", "counted-.*"),
        ("--topic-partitions", "counted-a:1-,counted-b"),
        ("--topic-partitions", "counted-.*:-2", "--time", "earliest"),
        ("--topic", "counted-a", "--partitions", "0,2"),
        ("--topic", "counted-.*", "--time", "max-timestamp"),
        ("--topic", "counted-.*", "--time", "latest-tiered"),
    ],
)
def test_both_show_the_same_offsets(
    tools: ConsoleTools, odradek: Odradek, arguments: tuple[str, ...]
) -> None:
    if "counted-a" not in odradek("topics", "--list").out:
        tools.create_topic("counted-a", 3)
        tools.create_topic("counted-b", 1)
        odradek("produce", "--topic", "counted-a", "--sync", stdin="a\nb\nc\nd\n")

    assert odradek("get-offsets", *arguments).out == tools.succeed("kafka-get-offsets", *arguments)


def test_both_delete_records(tools: ConsoleTools, odradek: Odradek, tmp_path: Path) -> None:
    tools.create_topic("cut-by-both")
    odradek("produce", "--topic", "cut-by-both", stdin="a\nb\nc\n")
    rows = [{"topic": "cut-by-both", "partition": 0, "offset": 2}]
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": rows, "version": 1}))

    ours = odradek("delete-records", "--offset-json-file", str(file))
    theirs = tools.succeed("kafka-delete-records", "--offset-json-file", str(file))

    assert ours == Done(0, theirs, [])


def test_a_subscription_that_does_not_exist_is_reported_alike(tools: ConsoleTools, odradek: Odradek) -> None:
    arguments = ("--describe", "--name", "never")

    theirs = tools.jvm.run(
        "org.apache.kafka.tools.ClientMetricsCommand", "--bootstrap-server", tools.bootstrap, *arguments
    )

    assert odradek("client-metrics", *arguments) == Done(0, theirs.out.splitlines(), [])
