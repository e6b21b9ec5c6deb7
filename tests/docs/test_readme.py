"""README leads a newcomer to an answer within two links, and its commands are those of the program."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from odradek.cli.main import cli
from support.reference_page import DOCS, ROOT

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
LINK = re.compile(r"\]\((?!https?://)(?P<target>[^)\s#]+\.md)(?:#[^)\s]*)?\)")
COMMAND = re.compile(r"`(odradek [^`]+)`")
HEADING = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)


class Question(NamedTuple):
    """What a newcomer asks, the section that answers, and words of the answer."""

    question: str
    page: Path
    section: str
    answer: str


QUESTIONS = [
    Question("Which program do I need?", README, "Which program do I need", "gateway"),
    Question(
        "How is it better than a JMX exporter, and when should I not use it?",
        DOCS / "explanation/why-odradek.md",
        "When not to use it",
        "one node without replication",
    ),
    Question(
        "Does it work with my managed cluster?",
        DOCS / "howto/gateway-for-your-cluster.md",
        "What your cluster needs",
        "Amazon MSK",
    ),
    Question(
        "How much slower do requests get?",
        DOCS / "explanation/gateway.md",
        "What passing costs",
        "0.18 ms longer",
    ),
    Question(
        "What do my applications notice if it fails?",
        DOCS / "reference/gateway.md",
        "Faults",
        "Telemetry never costs a record",
    ),
    Question(
        "What about clients that cannot push?",
        DOCS / "reference/observed-metrics.md",
        "Metrics of observed clients",
        "kafka-python",
    ),
    Question(
        "How do I see my clients in Prometheus?",
        DOCS / "howto/prometheus.md",
        "3. Start Prometheus",
        "scrape_configs",
    ),
    Question(
        "A consumer lags: whose fault is it, and what do I do?",
        DOCS / "reference/runbook.md",
        "A group is behind",
        "Is there a hurry?",
    ),
    Question(
        "How many machines do I need?",
        DOCS / "explanation/sizing.md",
        "The table",
        "hosts or gateways",
    ),
    Question(
        "How do I upgrade it, and go back?",
        DOCS / "howto/operate.md",
        "Upgrade and downgrade",
        "Downgrade",
    ),
    Question(
        "How do I get rid of it?",
        DOCS / "howto/put-a-gateway-in-front.md",
        "Go back",
        "bootstrap.servers",
    ),
    Question(
        "Can I test my client without Docker?",
        DOCS / "howto/test-your-client.md",
        "A host per test",
        "odradek_host",
    ),
]


def linked(page: Path) -> set[Path]:
    """The pages to which a page links."""
    return {
        (page.parent / link["target"]).resolve() for link in LINK.finditer(page.read_text(encoding="utf-8"))
    }


def within_two_links() -> set[Path]:
    first = linked(README)
    return {README, *first, *(page for each in first if each.exists() for page in linked(each))}


NEAR = within_two_links()


def section(page: Path, title: str) -> str:
    """A section of a page, or the beginning of the page if that is its title."""
    text = page.read_text(encoding="utf-8")
    (found,) = (heading for heading in HEADING.finditer(text) if heading["title"] == title)
    end = HEADING.search(text, found.end())
    return text[found.end() : end.start() if end else None]


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: asked.question)
def test_the_answer_is_two_links_away(asked: Question) -> None:
    assert asked.page in NEAR
    assert asked.answer in section(asked.page, asked.section)


@pytest.mark.parametrize("command", sorted(set(COMMAND.findall(TEXT))))
def test_a_command_is_one_of_the_program(command: str) -> None:
    _, name, *arguments = shlex.split(command)
    found = cli.get_command(click.Context(cli), name)

    assert found is not None
    found.make_context(name, arguments)


def test_each_program_of_the_table_has_one_command_and_says_what_it_adds() -> None:
    table = section(README, "Which program do I need")
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| ")][1:]

    assert len(rows) >= 5
    assert {len(row) for row in rows} == {5}
    assert all(len(re.findall("`[^`]+`", row[-1])) == 1 and row[-2].strip() for row in rows)
