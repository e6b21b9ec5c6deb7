"""The kill switch: steps that take telemetry out of the gateway, down to a bare proxy.

There is no step without rewriting: clients would leave for the brokers' own addresses. The way out of the
gateway is to give clients the bootstrap address of the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

Step = Literal["full", "no-observation", "no-telemetry", "rewrite-only"]

STEPS: Final[tuple[Step, ...]] = get_args(Step)
OPAQUE_FETCH_VERSION: Final = 15
"""The last version of Fetch whose responses name no address."""


@dataclass(slots=True)
class Switch:
    """The position of the kill switch."""

    step: Step = "full"

    @property
    def position(self) -> int:
        """0 for everything, and 1 more for each step down."""
        return STEPS.index(self.step)

    def down(self) -> bool:
        """Take one step down; False at the last one."""
        if self.position + 1 == len(STEPS):
            return False
        self.step = STEPS[self.position + 1]
        return True

    def set(self, text: str) -> bool:
        """Take the step of this name; False if there is none, or nothing changes."""
        for step in STEPS:
            if step == text and step != self.step:
                self.step = step
                return True
        return False

    @property
    def observes(self) -> bool:
        """Whether new pairs are observed."""
        return self.step == "full"

    @property
    def has_telemetry(self) -> bool:
        """Whether clients are offered telemetry, and asked for it."""
        return self.position < STEPS.index("no-telemetry")

    @property
    def rewrites_least(self) -> bool:
        """Whether only what has to be rewritten is offered."""
        return self.step == "rewrite-only"
