"""Outcomes as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from matrix.lives import KINDS
from matrix.place import WAYS
from matrix.run import Outcome
from matrix.table import LIVES

LETTERS = {"console": "c", "scrape": "s", "remote write": "w"}
PAGE: Final = Path(__file__).resolve().parents[2] / "host" / "docs" / "reference" / "lives.md"
PLACES = {
    "host": "At a host",
    "gateway": "At a gateway before a host",
    "kafka": "At a gateway before Apache Kafka",
}


def said(outcome: Outcome) -> str:
    """A cell: ``ok``, else what rang wrongly and where it was not told; of a sick one also the seconds."""
    if outcome.failure:
        return f"failed: {outcome.failure[:60]}"
    wanted = LIVES[outcome.cell.life].rings
    found = {outlet: outcome.ids(outlet) for outlet in LETTERS}
    wrong: dict[str, str] = {}
    for outlet, letter in LETTERS.items():
        for each in found[outlet].keys() - wanted:
            wrong[each] = wrong.get(each, "") + letter
    parts = []
    if wanted:
        told = {letter: [found[o][i] for i in found[o].keys() & wanted] for o, letter in LETTERS.items()}
        parts.append(
            "told " + ", ".join(f"{letter} {min(times):.0f} s" for letter, times in told.items() if times)
            if any(told.values())
            else "not told"
        )
        late = [letter for letter, times in told.items() if not times]
        if any(told.values()) and late:
            parts.append("not " + "".join(late))
    parts += [f"**{each}** ({where})" for each, where in sorted(wrong.items())]
    if not wanted and (unseen := outcome.unseen):
        parts.append(f"unseen ({''.join(LETTERS[each] for each in unseen)})")
    return "; ".join(parts) or "ok"


def table(outcomes: Sequence[Outcome], way: str) -> Iterator[str]:
    """The lives of a place by kinds of clients."""
    here = {(each.cell.life, each.cell.kind.name): each for each in outcomes if each.cell.way == way}
    lived = {kind for _, kind in here}
    kinds = [each.name for each in KINDS if each.name in lived]
    yield "| life | " + " | ".join(kinds) + " |"
    yield "|---" * (len(kinds) + 1) + "|"
    for life in LIVES:
        row = [said(here[life, kind]) if (life, kind) in here else "" for kind in kinds]
        if any(row):
            yield f"| {life} | " + " | ".join(row) + " |"


def summary(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """How many cells are right, by outlet."""
    yield "| | console | scrape | remote write | all three |"
    yield "|---|---|---|---|---|"
    for title, is_sick in (("healthy lives: silent", False), ("sick lives: told, and nothing else", True)):
        these = [each for each in outcomes if bool(LIVES[each.cell.life].rings) is is_sick]
        right = [[each.is_right(outlet) for outlet in LETTERS] for each in these]
        counts = [sum(each[number] for each in right) for number in range(len(LETTERS))]
        yield f"| {len(these)} {title} | {' | '.join(map(str, counts))} | {sum(map(all, right))} |"


def page(outcomes: Sequence[Outcome]) -> Iterable[str]:
    """The whole report."""
    for way in WAYS:
        here = [each for each in outcomes if each.cell.way == way]
        if here:
            yield from (f"{PLACES[way]} (c console, s rules by scrape, w rules by remote write):", "")
            yield from (*summary(here), "", *table(here, way), "")


def rows(outcomes: Sequence[Outcome]) -> Iterator[dict[str, object]]:
    """Each ring, with the seconds since its trouble or the begin of its life."""
    for outcome in outcomes:
        cell = outcome.cell
        for ring, times in outcome.rang.items():
            yield {
                "way": cell.way,
                "life": cell.life,
                "kind": cell.kind.name,
                "outlet": ring.outlet,
                "id": ring.id,
                "subject": ring.subject,
                "first_s": round(times[0], 1),
                "last_s": round(times[-1], 1),
                "times": len(times),
            }


def write(outcomes: Sequence[Outcome]) -> None:
    """Write the report into its page, in place of what was measured there before."""
    text = PAGE.read_text(encoding="utf-8")
    for way in {each.cell.way for each in outcomes}:
        report = "\n".join(page([each for each in outcomes if each.cell.way == way]))
        begin, end = f"<!-- {way} -->\n", f"<!-- /{way} -->"
        text = f"{text.split(begin)[0]}{begin}{report}\n{end}{text.split(end)[1]}"
    PAGE.write_text(text, encoding="utf-8")
