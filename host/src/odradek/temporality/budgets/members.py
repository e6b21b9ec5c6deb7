"""All live client instances, counted."""

from __future__ import annotations

from collections import OrderedDict

from odradek.temporality.budgets.member import Member, Other, is_other
from odradek.temporality.budgets.policy import Budget, BudgetLimits
from odradek.temporality.budgets.series_counts import ClientFacts, SeriesCount, SeriesCounts
from odradek.temporality.client_state import ClientState
from odradek.temporality.engine import Engine


class Members:
    """The live instances of one engine, the longest silent first."""

    def __init__(self, limits: BudgetLimits, engine: Engine) -> None:
        self.limits = limits
        self.shapes = engine.clients.shapes
        self.series = SeriesCounts(engine.keys)
        self.live: OrderedDict[bytes, Member] = OrderedDict()
        self.budgets: dict[tuple[str, ...], Budget] = {}

    def join(self, instance_id: bytes, client: ClientState, facts: ClientFacts) -> Member:
        """A new member without series."""
        is_shared = is_other(instance_id)
        counts = self.series.of_client(facts, is_other=is_shared)
        app, principal, total, _ = counts
        limits = self.limits
        budgets = (
            self.budget(("app", facts.principal, facts.app), limits.app_series, app),
            self.budget(("principal", facts.principal), limits.principal_series, principal),
            self.budget(("all",), limits.series, total),
        )
        if is_shared:
            member: Member = Other(instance_id, client, facts, counts, budgets)
        else:
            member = Member(client, facts, counts, budgets)
        self.live[instance_id] = member
        return member

    def budget(self, key: tuple[str, ...], limit: int, count: SeriesCount) -> Budget:
        """The budget of a scope."""
        found = self.budgets.get(key)
        if found is None:
            found = self.budgets[key] = Budget(key, limit, count)
        return found

    def leave(self, instance_id: bytes, member: Member, now_ms: int) -> None:
        """Uncount an instance that has ended."""
        del self.live[instance_id]
        member.uncount(list(member.counted()), self.series, now_ms)
        for part in member.parts or ():
            if part.other is not None:
                part.other.members.pop(instance_id, None)
        if isinstance(member, Other):
            member.epoch += 1
        if member.shape is not None:
            self.shapes.release(member.shape)
        self.series.leave(member.facts, is_other=is_other(instance_id))
        for budget in member.budgets:
            if not budget.count.users:
                self.budgets.pop(budget.key, None)

    def hold(self, member: Member) -> None:
        """Note that the streams that a client has now are counted.

        The engine keeps the keys of a shape only as long as it has a user.
        """
        shape, old = member.client.shape, member.shape
        if shape is not old:
            self.shapes.use(shape)
            if old is not None:
                self.shapes.release(old)
            member.shape = shape

    def uncount_dropped(self, member: Member, now_ms: int) -> None:
        """Uncount streams that were silent for so long that the engine has forgotten them."""
        current, old = set(member.client.shape.keys), member.shape
        dropped = [key for key in old.keys if key not in current] if old is not None else []
        counted = [key for key in dropped if key not in member.hidden and key not in member.ended]
        member.uncount(counted, self.series, now_ms)
        member.hidden.difference_update(dropped)
        member.ended.difference_update(dropped)
        for key in dropped:  # another stream may get the number of a key that is free
            member.weights.pop(key, None)
