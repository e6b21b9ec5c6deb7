"""Time of one decision of the standard authorizer, by the number of ACLs, in microseconds of CPU.

    python -m bench.authorizer

Half of the ACLs are about literal topics and half about prefixes of many lengths; 100 principals share them.
``denied`` and ``allowed`` are decisions about names that were not asked before, ``remembered`` is the same
question again, and ``any topic`` is the question of a producer without a transactional id.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from time import process_time_ns

from odradek.plugin.authorizer import AclOperation, AclPermission, PatternType, ResourceType
from odradek.security.acl import Acl, AclEntry, ResourcePattern
from odradek.security.standard_authorizer import StandardAuthorizer

QUESTIONS = 20_000
COUNTS = (10, 1_000, 10_000, 50_000)
LETTERS = "abcdefghijklmnopqrstuvwxyz."
HOST = "10.0.0.5"
TOPIC, WRITE, PREFIXED = ResourceType.TOPIC, AclOperation.WRITE, PatternType.PREFIXED
ALLOWED = AclEntry("User:app", "*", WRITE, AclPermission.ALLOW)


def names(dice: random.Random, count: int) -> list[str]:
    """Distinct names with common beginnings."""
    found: dict[str, None] = {}
    while len(found) < count:
        team = f"team{dice.randrange(50)}."
        found[team + "".join(dice.choices(LETTERS, k=dice.randrange(3, 40)))] = None
    return list(found)


def authorizer_with(dice: random.Random, count: int) -> StandardAuthorizer:
    """An authorizer with so many ACLs."""
    made = StandardAuthorizer(["User:admin"])
    patterns = zip(names(dice, count), [PatternType.LITERAL, PREFIXED] * count, strict=False)
    made.add(
        Acl(
            ResourcePattern(TOPIC, name, pattern_type),
            AclEntry(f"User:{dice.randrange(100)}", "*", WRITE, AclPermission.ALLOW),
        )
        for name, pattern_type in patterns
    )
    return made


def microseconds(ask: Callable[[str], object], asked: Sequence[str]) -> float:
    """The CPU time of one question."""
    begin = process_time_ns()
    for name in asked:
        ask(name)
    return (process_time_ns() - begin) / len(asked) / 1_000


def main() -> None:
    for count in COUNTS:
        dice = random.Random(count)
        authorizer = authorizer_with(dice, count)
        known = list(authorizer.acls.patterns)
        asked = [f"{dice.choice(known).name}.{number}" for number in range(QUESTIONS)]
        authorizer.add([Acl(ResourcePattern(TOPIC, "team", PREFIXED), ALLOWED)])
        costs = {
            "denied": microseconds(
                partial(authorizer.decide_now, "User:stranger", HOST, WRITE, TOPIC), asked
            ),
            "allowed": microseconds(partial(authorizer.decide_now, "User:app", HOST, WRITE, TOPIC), asked),
            "remembered": microseconds(
                partial(authorizer.decide, "User:app", HOST, WRITE, TOPIC), [asked[0]] * QUESTIONS
            ),
            "any topic": microseconds(
                partial(authorizer.decide_by_own_acls, host=HOST, operation=WRITE, resource_type=TOPIC),
                [f"User:{number}" for number in range(100)],
            ),
        }
        print(f"{count:6} ACLs: " + ", ".join(f"{what} {cost:.2f} µs" for what, cost in costs.items()))


if __name__ == "__main__":
    main()
