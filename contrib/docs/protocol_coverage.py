"""Writes ``host/docs/reference/protocol-coverage.md`` from the ledger and the docstrings of the handlers.

    python -m contrib.docs.protocol_coverage            # from the repository's root
    python -m contrib.docs.protocol_coverage --check    # exit status 1 if the page is out of date

The ledger (``tests/conformance/ledger.toml``) lists the served and refused versions, and the tests that prove
them; ``authorization.toml`` beside it lists the rights that each API asks for. Ignored fields and differences
from Kafka are taken from the docstring of the handler.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LEDGER = ROOT / "tests/conformance/ledger.toml"
RIGHTS = ROOT / "tests/conformance/authorization.toml"
PAGE = ROOT / "host/docs/reference/protocol-coverage.md"
HANDLERS = ROOT / "host/src/odradek/broker/handlers"
WIDTH = 120
HEADING = re.compile(r"(?P<title>[A-Z][A-Za-z ]*?)(?: \((?P<condition>.*)\))?:")

INTRODUCTION = """\
# Protocol coverage

<!-- Written by `python -m contrib.docs.protocol_coverage`: edit tests/conformance/ledger.toml. -->

The APIs of the Kafka protocol that this host serves. Ranges are those of Kafka 4.4 unless stated otherwise.
The [ledger](../../../tests/conformance/ledger.toml) names the tests that prove each row, and
[FINDINGS](../../../tests/conformance/FINDINGS.md) has Apache Kafka's responses where documents disagree.

An API that is not in the table, or a version outside its range, closes the connection, as in Kafka.
ApiVersions above v5 is answered in v0 with the served range.
"""

SERVED = """\
## Served

*Rights* are the operations and resource types that an [authorizer](../howto/authorize-clients.md) is asked
for, in any version and for any part of a request; a right to the cluster may replace those to topics.

| key | API | versions | remarks | rights |
|---|---|---|---|---|"""

DIFFERENCES = """
## Differences of all APIs

Requests are read as Kafka reads them (`tests/integration/java/test_mutated_requests.py` compares the two):
text that is not UTF-8 has replacement characters, tags may come in any order, and what a broker cannot read
closes the connection. What differs:

* All arrays and tags of a request together have at most 20 500 elements, where Kafka allows 1 000 000 in each
  array ([why](../decisions/0014-smaller-requests-than-responses.md)).
* A size, count or tag that does not fit into 31 bits closes the connection: Kafka drops the bits beyond 32,
  and takes negative ones for null.
* A client id may be null, where Kafka takes null for the empty one; PushTelemetry with null metrics is read,
  because librdkafka sends it.

`tests/integration/java/test_compressed_batches.py` compares batches in every form of every codec. What Kafka
takes is taken, and what it refuses is refused, but for these:

* INVALID_RECORD refuses what cannot be decompressed, where Kafka mostly answers UNKNOWN_SERVER_ERROR.
* gzip with reserved flags, lz4 with a wrong content size or checksum, and a frame of zstd after the records
  that ends early are refused: Kafka reads no further than the records, the decoders of other clients do.
* Compressed records that contradict their own sizes are refused: Kafka takes them, and no consumer can read
  them.
* More than 128 members of gzip or frames of zstd are refused: encoders write one, and each takes time.

`tests/integration/java/test_random_requests.py` compares the answers to random requests of every API in every
version. They have the same errors and the same structure, but for these:

* A name or partition that is repeated is answered as often, and a topic without partitions is answered. Most
  of Kafka's APIs answer each once, and leave such topics out. Clients name each once.
* AddPartitionsToTxn: Kafka never answers a request without topics. From v4 on, which only brokers send, it
  answers UNKNOWN_TOPIC_OR_PARTITION before it looks at the producer.
* AlterConfigs: Kafka never answers about several resources of types that do not exist.
* Fetch and ListOffsets: an isolation level that does not exist is UNKNOWN_SERVER_ERROR. Kafka finds it
  before it looks at timestamps, and after it has looked at topics and sessions.
* DeleteTopics without time is REQUEST_TIMED_OUT, also for topics that are named wrongly.
* Fetch: the id of zeros beside another unknown id is UNKNOWN_TOPIC_ID. Kafka fails: UNKNOWN_SERVER_ERROR.
* JoinGroup: a protocol with an empty name is named in the answer, where Kafka has null from v7 on. Kafka
  never answers a member that names a protocol twice. A member without protocols that does not belong to a
  group without members is UNKNOWN_MEMBER_ID; Kafka looks at the protocols first.
* ListGroups and DescribeGroups: a group that only a refused join or commit has named does not exist. Kafka
  keeps it for a while, empty.
* Produce: null records are INVALID_RECORD. Kafka never answers.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A range of versions of one API."""

    api: str
    key: int
    first: int
    last: int
    status: str
    """``supported``, or ``refused`` for versions that are advertised but not served."""
    says: str
    refuses: tuple[str, ...]
    proof: tuple[str, ...]

    @property
    def handler(self) -> Path:
        """The file that serves the API."""
        return HANDLERS / f"{re.sub('(?<=[a-z])(?=[A-Z])', '_', self.api).lower()}.py"

    @property
    def versions(self) -> str:
        """The range as text."""
        return f"v{self.first}" if self.first == self.last else f"v{self.first}-v{self.last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A feature that Kafka has and this host does not."""

    what: str
    means: str
    apis: dict[str, int]
    """Names and keys of the APIs that belong to the feature and are not served."""


@dataclass(frozen=True, slots=True)
class Section:
    """One heading of a handler's docstring."""

    condition: str = ""
    items: list[str] = field(default_factory=list)


def load_ledger(path: Path = LEDGER) -> tuple[list[Row], list[Absence]]:
    """Load the ledger, with rows in the order of key and version."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    rows = [row(entry) for entry in document["row"]]
    absences = [
        Absence(what=entry["what"], means=entry["means"], apis=entry.get("apis", {}))
        for entry in document["absent"]
    ]
    return sorted(rows, key=lambda found: (found.key, found.first)), absences


def row(entry: dict[str, Any]) -> Row:
    """Convert one ``[[row]]``.

    Raises:
        KeyError: A key is missing.
    """
    first, _, last = str(entry["versions"]).partition("-")
    return Row(
        api=entry["api"],
        key=entry["key"],
        first=int(first),
        last=int(last or first),
        status=entry["status"],
        says=entry["says"],
        refuses=tuple(entry.get("refuses", ())),
        proof=tuple(entry["proof"]),
    )


def sections(handler: Path) -> dict[str, Section]:
    """The sections of a handler's docstring, by heading."""
    docstring = ast.get_docstring(ast.parse(handler.read_text(encoding="utf-8"))) or ""
    found: dict[str, Section] = {}
    current = Section()
    for line in docstring.splitlines():
        heading = HEADING.fullmatch(line)
        if heading is not None:
            current = found[heading["title"]] = Section(heading["condition"] or "")
        elif line.startswith("    * "):
            current.items.append(line.removeprefix("    * ").strip())
        elif line.startswith("      ") and current.items:
            current.items[-1] += f" {line.strip()}"
    return found


def markdown(text: str) -> str:
    """Convert the literals of a docstring to Markdown."""
    return text.replace("``", "`")


def page(rows: Iterable[Row], absences: Iterable[Absence]) -> str:
    """The text of the page."""
    rows = list(rows)
    remarks = {api: remarks_on(api, rows) for api in dict.fromkeys(row.api for row in rows)}
    parts = [INTRODUCTION, SERVED]
    parts += [
        f"| {row.key} | {f'[{row.api}](#{row.api.lower()})' if remarks[row.api] else row.api} "
        f"| {row.versions} | {summary(row)} | {rights_of(row.api)} |"
        for row in rows
    ]
    parts.append(DIFFERENCES)
    parts.append("## Refused, ignored and different\n\nAPIs that are not here do what Kafka does.")
    parts += [f"\n### {api}\n\n{found}" for api, found in remarks.items() if found]
    parts.append("\n## Not supported\n")
    parts.append("Features of Kafka 4.4 that this host does not have.\n")
    parts.append("| feature | behavior of this host | APIs |\n|---|---|---|")
    for absence in absences:
        apis = ", ".join(f"{name} ({key})" for name, key in absence.apis.items())
        parts.append(f"| {absence.what} | {absence.means} | {apis or '-'} |")
    return "\n".join(parts) + "\n"


def summary(row: Row) -> str:
    """One sentence about a range of versions."""
    return ("refused: " if row.status == "refused" else "") + markdown(row.says)


def remarks_on(api: str, rows: list[Row]) -> str:
    """A list of the refusals, ignored fields and differences of an API; empty without any."""
    of_api = [row for row in rows if row.api == api]
    docstring = sections(of_api[0].handler)
    lines = bullets("Refused", Section(items=[each for row in of_api for each in row.refuses]))
    for title in ("Ignored fields", "Differs from Kafka"):
        lines += bullets(title, docstring.get(title, Section()))
    return "\n".join(lines).rstrip()


def rights_of(api: str) -> str:
    """The rights that an API asks for, or the reason why it asks for none."""
    rows = tomllib.loads(RIGHTS.read_text(encoding="utf-8"))["row"]
    (found,) = (each for each in rows if each["api"] == api)
    return ", ".join(f"`{right}`" for right in found["rights"]) or f"none; {found['why']}"


def bullets(title: str, section: Section) -> list[str]:
    """A list with a heading; empty if there are no items."""
    if not section.items:
        return []
    condition = f" ({markdown(section.condition)})" if section.condition else ""
    items = [filled(f"* {markdown(item)}", indent="  ") for item in section.items]
    return [f"{title}{condition}:\n", *items, ""]


def filled(text: str, indent: str = "") -> str:
    """Wrap the text at `WIDTH`; a longer word gets a line of its own."""
    return textwrap.fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def main(arguments: list[str]) -> int:
    """Write or check the page, and return the exit status."""
    wanted = page(*load_ledger())
    if arguments == ["--check"]:
        current = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        if current != wanted:
            sys.stderr.write(
                f"{PAGE.relative_to(ROOT)} is out of date: python -m contrib.docs.protocol_coverage\n"
            )
            return 1
        return 0
    if arguments:
        sys.stderr.write("usage: python -m contrib.docs.protocol_coverage [--check]\n")
        return 2
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
