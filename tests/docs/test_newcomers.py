"""What newcomers ask leads, within two links from README, to the page that answers it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.reference_page import DOCS, ROOT

pytestmark = pytest.mark.ci

LINK = re.compile(r"\]\((?!https?://|mailto:)(?P<path>[^)#\s]*)")
QUESTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Which program do I need for a Kafka cluster that I have?": (
        "README.md",
        ("odradek gateway --upstream",),
    ),
    "Does it work with my cluster (MSK, Confluent Cloud, Strimzi)?": (
        "host/docs/howto/gateway-for-your-cluster.md",
        ("Amazon MSK", "Confluent Cloud", "Strimzi"),
    ),
    "Which consumer is slow, and by how much is it behind?": (
        "host/docs/howto/measure-lag.md",
        ("odradek lag --bootstrap-server",),
    ),
    "How do I see the slowest consumer of my cluster, and an alarm, without a change of a client?": (
        "host/docs/tutorial/your-cluster.md",
        ("odradek lag --bootstrap-server", "odradek console", "KafkaClientGroupStalled"),
    ),
    "How do I get it into Prometheus, by scrapes or by remote write?": (
        "host/docs/howto/prometheus.md",
        ("Scrape or remote write?", "12 %", "0.8 %"),
    ),
    "What happens when the machine of a host dies?": (
        "host/docs/howto/run-it-in-production.md",
        ("What happens when the machine of a host dies", "3 to 15 s"),
    ),
    "When should I not use it?": ("host/docs/explanation/why-odradek.md", ("not",)),
    "How do I see whether my configuration will work?": (
        "host/docs/howto/put-a-gateway-in-front.md",
        ("odradek gateway --check",),
    ),
    "How do I test my Kafka client without Docker?": ("host/docs/howto/test-your-client.md", ("pytest",)),
    "Does it run on ARM or on macOS?": ("host/docs/howto/install.md", ("ARM 64", "macOS", "Alpine")),
    "How do I get the telemetry into Spark?": ("host/docs/howto/run-the-pipeline.md", ("odradek spark",)),
    "How do I run it in Kubernetes?": ("contrib/helm/README.md", ("helm install",)),
    "Which rights does it need on my cluster?": (
        "host/docs/howto/put-a-gateway-in-front.md",
        ("`DescribeConfigs` on the cluster",),
    ),
}
"""The page, and words of the answer."""
LINKS = 2


def linked(path: Path) -> set[Path]:
    """The pages that a page links."""
    found = {
        (path.parent / match["path"]).resolve()
        for match in LINK.finditer(path.read_text(encoding="utf-8"))
        if match["path"]
    }
    return {each for each in found if each.suffix == ".md" and each.exists()}


def reached(links: int) -> set[Path]:
    """The pages within so many links from README."""
    found = {ROOT / "README.md"}
    for _ in range(links):
        found |= {other for each in found for other in linked(each)}
    return found


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_leads_to_its_answer(question: str) -> None:
    page, words = QUESTIONS[question]

    assert ROOT / page in reached(LINKS)
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert [each for each in words if each not in text] == []


def test_every_page_of_the_documentation_is_within_reach() -> None:
    pages = {path for folder in ("howto", "tutorial") for path in (DOCS / folder).glob("*.md")}

    assert pages - reached(LINKS) == set()
