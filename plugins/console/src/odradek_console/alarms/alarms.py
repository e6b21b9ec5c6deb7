"""What is alarming now, as messages: one when a cause begins, and one when it is over.

An alarm is a cause that several clients have in common, a finding of clients that no cause explains, or
gateways and hosts that began together to be down or to have lost a destination.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urlencode

from odradek.findings.hints import EXPLAINS, FINDINGS, SHARED
from odradek_console.causes import Cause
from odradek_console.engine.client_entry import State
from odradek_console.links import programs_link
from odradek_console.program_rows import ProgramRow, Trouble, problem_of, problems
from odradek_console.rows import ClientRow
from odradek_console.text import age, counted, some_of

SETTLE_MS: Final = 30_000
"""An alarm is told when it has been there for so long: what begins together gets one cause."""
OVER_MS: Final = 120_000
"""It is over when it has not been there for so long."""
MOST_NAMES: Final = 5
"""Clients that a message names."""
TROUBLES: Final = {each.id: each for each in (*FINDINGS, *SHARED)}
PROGRAM: Final = "program"
Key = tuple[str, str, str]
"""The finding, and key and value of its cause; both are empty without one. Or `PROGRAM`, what is wrong with
gateways or hosts, and when that began.
"""


@dataclass(frozen=True, slots=True)
class Message:
    """What a person reads."""

    title: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """Something that is wrong."""

    text: str
    clients: tuple[str, ...]
    """Their names."""
    link: str
    """The page that shows them."""
    begin_ms: int
    seen_ms: int
    is_told: bool = False
    programs: Mapping[str, int] = field(default_factory=dict)
    """When each gateway or host, by URL, was seen last in its trouble."""

    def ill(self) -> dict[str, int]:
        """Its gateways and hosts but those that were well for long while others were not."""
        return {url: at_ms for url, at_ms in self.programs.items() if self.seen_ms - at_ms < OVER_MS}


@dataclass(slots=True)
class Alarms:
    """The alarms that go on. Not thread-safe.

    Args:
        url: Where people reach the pages, without a slash at the end; empty for messages without links.
    """

    url: str = ""
    going_on: dict[Key, Alarm] = field(default_factory=dict)

    def at(
        self,
        rows: Sequence[ClientRow] | None,
        causes: Sequence[Cause],
        now_ms: int,
        programs: Iterable[ProgramRow] = (),
    ) -> list[Message]:
        """The messages that are due.

        Args:
            rows: All clients. None: nobody knows how they are, so their alarms stay as they are.
            causes: What explains the findings of several.
            now_ms: Monotonic milliseconds, not those of the call before.
            programs: Gateways and hosts.
        """
        found = dict(alarms_of(rows or (), causes, now_ms)) | dict(self.of_programs(programs, now_ms))
        for key, alarm in found.items():
            before = self.going_on.get(key, alarm)
            self.going_on[key] = replace(alarm, begin_ms=before.begin_ms, is_told=before.is_told)
        known = [key for key in self.going_on if rows is not None or key[0] == PROGRAM]
        return [message for key in known for message in self.due(key, now_ms)]

    def of_programs(self, programs: Iterable[ProgramRow], now_ms: int) -> Iterator[tuple[Key, Alarm]]:
        """The alarms about gateways and hosts. One joins the alarm of its trouble that is not told yet."""
        for trouble, rows in problems(programs).items():
            known = {key: each for key, each in self.going_on.items() if key[:2] == (PROGRAM, trouble)}
            settling = (key for key, each in known.items() if not each.is_told)
            new = next(settling, (PROGRAM, trouble, str(now_ms)))
            key_of = {url: key for key, each in known.items() for url in each.ill()}
            found: dict[Key, list[ProgramRow]] = {}
            for row in rows:
                found.setdefault(key_of.get(row.program, new), []).append(row)
            for key, some in found.items():
                yield key, alarm_of(some, known.get(key), now_ms)

    def due(self, key: Key, now_ms: int) -> Iterator[Message]:
        """The message about one alarm, if there is one."""
        alarm = self.going_on[key]
        if alarm.seen_ms == now_ms:
            if not alarm.is_told and now_ms - alarm.begin_ms >= SETTLE_MS:
                self.going_on[key] = replace(alarm, is_told=True)
                yield self.message(key, alarm)
        elif not alarm.is_told or self.is_explained(key):
            del self.going_on[key]
        elif now_ms - alarm.seen_ms >= OVER_MS:
            del self.going_on[key]
            lasted = age(alarm.seen_ms - alarm.begin_ms)
            yield Message(f"Over: {alarm.text}", f"It has lasted {lasted}.{self.where(alarm)}")

    def is_explained(self, key: Key) -> bool:
        """Whether another alarm is about the same: its clients have got a cause, or the programs are down."""
        if key[0] == PROGRAM:
            alarm = self.going_on[key]
            told = (each for at, each in self.going_on.items() if at[1] == Trouble.DOWN and each.is_told)
            down = {url for each in told for url, at_ms in each.programs.items() if at_ms > alarm.seen_ms}
            return key[1] == Trouble.LOST and alarm.ill().keys() <= down
        names = {name for id_, *_ in self.going_on.keys() - {key} for name in (id_, *EXPLAINS.get(id_, ()))}
        return key[1] == "" and key[0] in names

    def message(self, key: Key, alarm: Alarm) -> Message:
        """What tells that an alarm begins."""
        trouble = TROUBLES.get(key[0])
        if trouble is None:
            return Message(alarm.text, self.where(alarm).lstrip())
        who = some_of(alarm.clients, MOST_NAMES)
        return Message(alarm.text, f"{trouble.question}\nClients: {who}\n{trouble.advice}{self.where(alarm)}")

    def where(self, alarm: Alarm) -> str:
        """The address of the page, on a line of its own."""
        return f"\n{self.url}{alarm.link}" if self.url else ""


def alarm_of(rows: Sequence[ProgramRow], before: Alarm | None, now_ms: int) -> Alarm:
    """The alarm about some gateways and hosts. Once it is told it keeps its words, whoever is well again."""
    urls = [row.program for row in rows]
    return Alarm(
        text=before.text if before is not None and before.is_told else problem_of(rows),
        clients=(),
        link=programs_link(urls),
        begin_ms=now_ms,
        seen_ms=now_ms,
        programs=(before.ill() if before is not None else {}) | dict.fromkeys(urls, now_ms),
    )


def alarms_of(rows: Sequence[ClientRow], causes: Sequence[Cause], now_ms: int) -> Iterator[tuple[Key, Alarm]]:
    """What is wrong now, as the first page groups it."""
    names = {row.client_instance_id: row.client_id or row.client_instance_id for row in rows}

    def alarm(text: str, clients: Sequence[str], **query: str) -> Alarm:
        link = "/?" + urlencode(query)
        return Alarm(text=text, clients=tuple(clients), link=link, begin_ms=now_ms, seen_ms=now_ms)

    for cause in causes:
        clients = [names[each] for each in cause.clients if each in names]
        yield (
            (cause.id, cause.key, cause.value),
            alarm(cause.text, clients, causes=f"{cause.id}: {cause.key} *"),
        )
    by_finding: dict[str, list[ClientRow]] = {}
    for row in rows:
        for name in row.findings:
            by_finding.setdefault(name, []).append(row)
    for name, some in by_finding.items():
        some.sort(key=lambda row: (row.state is State.GONE, row.client_id))
        text = f"{name}: {counted(len(some), 'client')}"
        yield (
            (name, "", ""),
            alarm(text, [names[row.client_instance_id] for row in some], findings=name, state="*"),
        )
