"""The text formats of Prometheus: OpenMetrics 1.0.0, and the older one, 0.0.4.

A page is made in pieces, so that other threads get their turns. It has one family after the other, and in a
family one client after the other. A line is the name, the labels of the client, those of the data point, and
the value; the texts of labels are made once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from odradek_prometheus.client_facts import FACTS, fact_labels, page_facts
from odradek_prometheus.client_labels import Facts
from odradek_prometheus.client_series import ClientSeries, MappedSeries
from odradek_prometheus.compatible_lag import compatible
from odradek_prometheus.families import Family, FamilyType
from odradek_prometheus.histogram_parts import histogram_parts
from odradek_prometheus.label_values import Labels
from odradek_prometheus.mapped_streams import MappedStreams

PIECE_LINES: Final = 2_000
OPENMETRICS_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
TEXT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
NS_PER_S: Final = 1_000_000_000
ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
HELP_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n"})


@dataclass(frozen=True, slots=True)
class Format:
    """A text format."""

    openmetrics: bool = True
    utf8: bool = False
    """Names of metrics are as the clients have them."""
    created: bool = False
    """Counters and histograms have a line with the time of their start, in OpenMetrics."""

    @property
    def content_type(self) -> str:
        """The media type of a page."""
        found = OPENMETRICS_TYPE if self.openmetrics else TEXT_TYPE
        return f"{found}; escaping=allow-utf-8" if self.utf8 else found


class Page:
    """A page with the series of clients.

    Args:
        clients: Pictures of one moment.
        now_ms: Epoch milliseconds, for the age of pushes.
        style: The format.
        exporters: Those whose names the lag of groups has as well.
    """

    def __init__(
        self, clients: Sequence[ClientSeries], now_ms: int, style: Format, exporters: Sequence[str] = ()
    ) -> None:
        self.clients = clients
        self.now_ms = now_ms
        self.style = style
        self.exporters = exporters
        self.lines: list[str] = []
        self.quoted: dict[Family, str] = {}
        """Names as the clients have them. Of several families with one name, the others keep their own."""

    def pieces(self) -> Iterator[bytes]:
        """The page, in pieces of about two thousand lines. None of them is empty."""
        groups: dict[MappedStreams, list[ClientSeries]] = {}
        for client in self.clients:
            groups.setdefault(client.mapped, []).append(client)
        families = {family for mapped in groups for family in mapped.by_family}
        in_order = sorted(families, key=lambda each: each.name)
        if self.style.utf8:
            by_name = {each.utf8_name: each for each in reversed(in_order)}
            self.quoted = {each: name.translate(ESCAPES) for name, each in by_name.items()}
        for family in in_order:
            yield from self.family(family, groups)
        yield from self.compatible({family.name for family in families})
        clients = [client for client in self.clients if client.is_client]
        if clients:
            yield from self.facts(clients)
        if self.style.openmetrics:
            self.lines.append("# EOF")
        if self.lines:
            yield self.taken()

    def compatible(self, names: Collection[str]) -> Iterator[bytes]:
        """The lag of groups under the names of other exporters, but for names that clients have."""
        for name, series in compatible(self.clients, self.exporters):
            if name not in names:
                self.lines.append(f"# TYPE {name} gauge")
                self.lines += [
                    f"{name}{{{','.join(label_texts(labels))}}} {value!r}" for labels, value in series
                ]
                yield self.taken()

    def taken(self) -> bytes:
        """The lines so far."""
        self.lines.append("")
        piece = "\n".join(self.lines).encode("utf-8", "replace")
        self.lines = []
        return piece

    def family(self, family: Family, groups: dict[MappedStreams, list[ClientSeries]]) -> Iterator[bytes]:
        """The header and the series of a family, unless it has none."""
        header = self.header(family)
        for mapped, clients in groups.items():
            positions = mapped.by_family.get(family)
            if positions is None:
                continue
            step = max(1, PIECE_LINES // len(positions))
            for first in range(0, len(clients), step):
                found = self.series(family, mapped, positions, clients[first : first + step])
                if found:
                    self.lines += header
                    self.lines += found
                    header = []
                if len(self.lines) >= PIECE_LINES:
                    yield self.taken()

    def header(self, family: Family) -> list[str]:
        """The lines before the series of a family."""
        name = self.name(family)
        kind = FamilyType.HISTOGRAM if family.type is FamilyType.EXPONENTIAL else family.type
        found = [f"# HELP {name} {self.help_text(family.help)}", f"# TYPE {name} {kind}"]
        if family.unit and self.style.openmetrics and not self.style.utf8:
            found.append(f"# UNIT {name} {family.unit}")
        return found

    def name(self, family: Family) -> str:
        """The name of a family in its header."""
        if family in self.quoted:
            return f'"{self.quoted[family]}"'
        return family.base if self.style.openmetrics else family.name

    def help_text(self, text: str) -> str:
        return text.translate(ESCAPES if self.style.openmetrics else HELP_ESCAPES)

    def series(
        self,
        family: Family,
        mapped: MappedStreams,
        positions: Sequence[int],
        clients: Sequence[ClientSeries],
    ) -> list[str]:
        """The lines of a family for clients with the same streams."""
        is_number = family.type in (FamilyType.COUNTER, FamilyType.GAUGE)
        has_created = self.style.created and self.style.openmetrics and family.type is FamilyType.COUNTER
        if not is_number or has_created or self.style.utf8:
            return self.unusual(family, positions, clients)
        texts = texts_of(mapped)
        name = family.name
        lines = []
        # This loop runs for almost every line of a page.
        for client in clients:
            names = client.shown.names
            if not names or not names.isdisjoint(mapped.names):
                lines += self.unusual(family, positions, [client])
                continue
            head, live, values = f"{name}{{{text_of(client.shown)}", client.live, client.values
            lines += [
                f"{head}{texts[position]}}} {values[position]!r}" for position in positions if live[position]
            ]
        return lines

    def unusual(self, family: Family, positions: Sequence[int], clients: Sequence[ClientSeries]) -> list[str]:
        """`series` in any case."""
        lines: list[str] = []
        for client in clients:
            for position in positions:
                if client.live[position]:
                    lines += self.samples(client.at(position))
        return lines

    def samples(self, series: MappedSeries) -> Iterator[str]:
        """The lines of one series."""
        family, created = series.family, self.style.created and self.style.openmetrics
        if family.type is FamilyType.GAUGE:
            yield self.sample(family, "", series.labels, series.value)
            return
        if family.type is FamilyType.COUNTER:
            yield self.sample(family, "", series.labels, series.value)
        else:
            yield from self.histogram(series)
        if created:
            yield self.sample(family, "_created", series.labels, series.start_ns / NS_PER_S)

    def histogram(self, series: MappedSeries) -> Iterator[str]:
        """The lines of a histogram."""
        assert series.distribution is not None
        for suffix, bound, value in histogram_parts(series.distribution, series.value):
            labels = (*series.labels, ("le", bound)) if bound else series.labels
            yield self.sample(series.family, suffix, labels, value)

    def sample(self, family: Family, suffix: str, labels: Labels, value: float) -> str:
        """One line."""
        text = ",".join(label_texts(labels))
        if family in self.quoted:
            name = f'"{self.quoted[family]}{suffix}"'
            return f"{{{name},{text}}} {value!r}" if text else f"{{{name}}} {value!r}"
        name = (family.base if suffix == "_created" else family.name) + suffix
        return f"{name}{{{text}}} {value!r}"

    def facts(self, clients: Sequence[ClientSeries]) -> Iterator[bytes]:
        """The families about the clients and the page."""
        for fact, value in FACTS.items():
            self.lines += self.header(fact)
            for client in clients:
                text = ",".join(label_texts(fact_labels(fact, client)))
                self.lines.append(f"{fact.name}{{{text}}} {value(client, self.now_ms)!r}")
                if len(self.lines) >= PIECE_LINES:
                    yield self.taken()
        before: Family | None = None
        for own, labels, number in page_facts(self.clients):
            self.lines += self.header(own) if own is not before else []
            self.lines.append(f"{own.name}{{{','.join(label_texts(labels))}}} {number}")
            before = own


def label_texts(labels: Labels) -> list[str]:
    return [f'{name}="{value.translate(ESCAPES)}"' for name, value in labels]


def text_of(facts: Facts) -> str:
    """The labels of a client, made once."""
    if not facts.text:
        facts.text = ",".join(label_texts(facts.labels))
    return facts.text


def texts_of(mapped: MappedStreams) -> tuple[str, ...]:
    """The labels of each stream, to be added to those of its client; made once."""
    if not mapped.texts and mapped.streams:
        mapped.texts = tuple(
            [
                "".join([f",{text}" for text in label_texts(each.labels)]) if each else ""
                for each in mapped.streams
            ]
        )
    return mapped.texts
