"""The rules for an enricher. The host calls it on its loop, once per client instance and connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from odradek.plugin import UNKNOWN, Enricher, RequestContext
from odradek.testing.contracts.observing import (
    Watch,
    beside_another,
    called,
    closes_unused,
    contents,
    opened,
    refuse_changes,
    shown,
    taken_by,
    within_budget,
)
from odradek.testing.contracts.rule import RuleBroken, rules
from odradek.testing.contracts.samples import LONG_TEXT, ODD_TEXT, Samples, connection_of, context_of
from odradek.testing.contracts.subject import BUDGET_MS, Capability, Kind, Subject

ROUND = 50
INSTANCE_ID = bytes(range(16))
PRINCIPAL = "User:contract-kit"
SPOOFS = (
    "User:admin",
    "principal=User:admin",
    "principal=User:admin,contract_spoof=1;contract_spoof=2",
    "client_id",
    '","principal":"User:admin',
    "admin\nprincipal: User:admin",
)
"""Client ids and software names that a hostile client may send."""


def labels_of(enricher: Enricher, context: RequestContext) -> Any:
    """Call ``labels`` and return its result, which may be of any type.

    Raises:
        RuleBroken: The call raised an exception.
    """
    return called("labels", enricher.labels, INSTANCE_ID, context)


async def returns_in_time(subject: Subject) -> None:
    contexts = [context_of(f"orders-{number}") for number in range(ROUND)]
    async with opened(subject) as enricher:

        def call(number: int) -> None:
            enricher.labels(number.to_bytes(16), contexts[number])

        await within_budget("labels", call, lambda: range(ROUND), subject.budget_ms or BUDGET_MS)


async def changes_nothing(subject: Subject) -> None:
    record = Samples().push()
    before = contents(record)
    async with opened(subject) as enricher:
        labels_of(enricher, record.context)
        refuse_changes(before, contents(record))


async def keeps_nothing(subject: Subject) -> None:
    records = Samples().pushes(ROUND)
    async with opened(subject) as enricher:
        for record in records:
            labels_of(enricher, record.context)
        watch = Watch(records)
        records.clear()
        del record
        watch.refuse_leftovers("after its calls")


async def sees_through_spoofed(subject: Subject) -> None:
    async with opened(subject) as enricher:
        honest = dict(labels_of(enricher, context_of("orders", connection_of(PRINCIPAL))))
        for spoof in SPOOFS:
            liar = connection_of(PRINCIPAL, client_software_name=spoof, client_software_version=spoof)
            refuse_spoofed(honest, dict(labels_of(enricher, context_of(spoof, liar))), spoof)


def refuse_spoofed(honest: Mapping[str, str], labels: Mapping[str, str], spoof: str) -> None:
    """Check that a client cannot add a label or change one that is derived from its principal.

    Raises:
        RuleBroken: It can.
    """
    added = sorted(labels.keys() - honest.keys())
    if added:
        raise RuleBroken(f"a client named {spoof!r} gets additional labels: {', '.join(added)}")
    known = [name for name, value in honest.items() if PRINCIPAL in str(value)]
    for name in known:
        if labels.get(name) != honest[name]:
            found = labels.get(name)
            raise RuleBroken(
                f"a client named {spoof!r} changes the label {name} from {honest[name]!r} to {found!r}"
            )


async def answers_as_agreed(subject: Subject) -> None:
    async with opened(subject) as enricher:
        for client_id in ("orders", None):
            labels = labels_of(enricher, context_of(client_id))
            if not isinstance(labels, Mapping):
                raise RuleBroken(f"labels returned {type(labels).__name__}, expected a mapping of strings")
            for name, value in labels.items():
                if not (isinstance(name, str) and name and isinstance(value, str)):
                    raise RuleBroken(
                        f"labels returned {shown(name)}: {shown(value)}, expected non-empty name and string"
                    )


UNKNOWN_SOFTWARE: Final = connection_of(client_software_name=UNKNOWN, client_software_version=UNKNOWN)
ENRICHER_RULES: Final = rules(
    Kind.ENRICHER,
    {
        "returns-in-time": (returns_in_time,),
        "changes-nothing": (changes_nothing,),
        "keeps-nothing": (keeps_nothing,),
        "closes-unused": (closes_unused, Capability.CLOSE),
        "starts-twice": (beside_another(labels_of, context_of()),),
        "empty": (taken_by(labels_of, context_of(None, UNKNOWN_SOFTWARE), context_of("", UNKNOWN_SOFTWARE)),),
        "huge": (taken_by(labels_of, context_of(LONG_TEXT)),),
        "undecodable": (taken_by(labels_of, context_of(ODD_TEXT)),),
        "spoofed": (sees_through_spoofed,),
        "answers-as-agreed": (answers_as_agreed,),
    },
)
