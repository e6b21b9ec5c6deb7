"""``reference/versions.md`` has the versions of the files that test them, and README those of the page."""

from __future__ import annotations

import re

import pytest

from support.reference_page import DOCS, ROOT, page, rows, sections

PAGE = DOCS / "reference/versions.md"
LINK = re.compile(r"\]\(([^)#]+)\)")
NUMBER = re.compile(r"\d+(?:\.\d+)+")
MATRIX = rows(PAGE.read_text(encoding="utf-8"))
del MATRIX["with"]
IN_FILES: dict[str, tuple[str, ...]] = {
    "Kafka, beside a host": (r'^OLDER, NEWEST = VERSIONS = \("(.+)", "(.+)"\)$',),
    "Kafka behind a gateway": (r"<kafka\.version>(.+)</",),
    "Kafka without telemetry, behind a gateway": (r'^VERSION = "(.+)"$',),
    "Kafka with the relay": (r'^OLDEST = "(.+)"$', r"<kafka\.version>(.+)</"),
    "Java clients": (r'^    "([\d.]+)": \{"ApiVersions"',),
    "librdkafka, newest": (r'^confluent-kafka = "(.+)"$',),
    "librdkafka, oldest that pushes": (r'^OLD_LIBRDKAFKA = "(.+)"$',),
    "franz-go": (r'^package = "github\.com/twmb/franz-go"\nversion = "v(.+)"$',),
    "kafka-go": (r'^package = "github\.com/segmentio/kafka-go"\nversion = "v(.+)"$',),
    "aiokafka": (r'^aiokafka = "(.+)"$',),
    "kafka-python": (r'^kafka-python = "(.+)"$',),
    "Python": (r'"Programming Language :: Python :: (\d+\.\d+)"',),
    "Spark": (r'^@pytest\.mark\.parametrize\("version", \["(.+)\.\*", "(.+)\.\*", ">=([\d.]+),',),
    "the jar of Delta for Spark": (r'^DELTA_VERSIONS = .*"([\d.]+)"\}$',),
    "deltalake (delta-rs)": (r'^deltalake = "(.+)"$',),
    "DuckDB": (r'^duckdb = "(.+)"$',),
    "polars": (r'^polars = "(.+)"$',),
    "OpenTelemetry collector": (r"- gomod: .* v(0\..+)$",),
    "Prometheus 3": (r"^\tgithub\.com/prometheus/prometheus v(\S+)",),
    "Alertmanager": (r"^require github\.com/prometheus/alertmanager v(.+)$",),
    "Helm": (r"^require helm\.sh/helm/v3 v(.+)$",),
}
"""How each file of a row says the version."""
IN_README = {
    "Kafka behind a gateway": ("Kafka behind a gateway", "Kafka without telemetry, behind a gateway"),
    "Kafka with the relay": ("Kafka with the relay",),
    "clients that push (Java since 3.7, librdkafka since 2.5)": (
        "Java clients",
        "librdkafka, newest",
        "librdkafka, oldest that pushes",
        "franz-go",
    ),
    "other clients": ("kafka-python", "aiokafka"),
    "Python": ("Python",),
    "Spark": ("Spark",),
}
"""The rows of README's table, and those of the page."""


def test_every_row_has_its_files() -> None:
    assert set(MATRIX) == set(IN_FILES)


@pytest.mark.parametrize("row", IN_FILES)
def test_the_versions_are_those_of_the_files(row: str) -> None:
    files = [(PAGE.parent / link).resolve() for link in LINK.findall(MATRIX[row][-1])]

    found = [
        re.findall(pattern, file.read_text(encoding="utf-8"), re.MULTILINE)
        for file, pattern in zip(files, IN_FILES[row], strict=True)
    ]

    assert [each for each in found if not each] == []
    versions = {version for each in found for match in each for version in flat(match)}
    assert set(MATRIX[row][1].split(", ")) == versions


def flat(match: str | tuple[str, ...]) -> tuple[str, ...]:
    """The groups of a match, of which `findall` returns a single one as it is."""
    return (match,) if isinstance(match, str) else match


def test_readme_names_tested_versions() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## State\n")[2]
    table = rows(readme.partition("\n## ")[0])

    for row, sources in IN_README.items():
        tested = [version for source in sources for version in MATRIX[source][1].split(", ")]
        for told in NUMBER.findall(LINK.sub("", table[row][1])):
            assert any(f"{version}.".startswith(f"{told}.") for version in tested), f"{row}: {told}"


def test_the_page_of_python_and_the_matrix_agree() -> None:
    tested = rows(sections("howto/install.md")["Versions of Python"])

    short = {".".join(each.split(".")[:2]) for each in tested if each.startswith("3.")}
    assert short == set(MATRIX["Python"][1].split(", "))
    assert "../howto/install.md#versions-of-python" in page("reference/versions.md")
