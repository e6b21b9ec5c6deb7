"""Whether the coordinators take offsets from a client. They are asked only if a known partition has one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from odradek.group.group import PartitionCheck
from odradek.wire.api_error import ApiError


@dataclass(slots=True)
class CommitVerdict:
    """The verdict of the coordinators about one request, which is asked for once.

    Kafka refuses unknown partitions before it asks a coordinator, and with no others it does not ask at all.
    """

    ask: Callable[[], PartitionCheck | None]
    is_known: bool = False
    refusal: ApiError | None = None
    check: PartitionCheck | None = None

    def partition_check(self) -> PartitionCheck | None:
        """The check of each partition; None if there is none.

        Raises:
            ApiError: The request is refused.
        """
        if not self.is_known:
            self.is_known = True
            try:
                self.check = self.ask()
            except ApiError as error:
                self.refusal = error
        if self.refusal is not None:
            raise ApiError(self.refusal.code, self.refusal.message)
        return self.check
