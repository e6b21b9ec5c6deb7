"""One of several processes: the leader of a group that they all join.

A thread keeps up the membership. The brokers' session of a member that has died or hangs ends after
`SESSION_MS`; a leader counts itself out before, by its own monotonic clock, so that there are never two.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from math import inf
from typing import Final

from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError, RequestFailed
from odradek.client.group_member import NOT_A_MEMBER, ClassicMember, GroupTimes
from odradek.plugin.config import ConfigError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.join_group import JoinGroupResponseMember

log = logging.getLogger(__name__)

SESSION_MS: Final = 10_000
HEARTBEAT_S: Final = 1.0
LAPSE_S: Final = SESSION_MS / 1_000 - 3
"""A leader whose last good heartbeat was sent longer ago leads no more."""
TIMES: Final = GroupTimes(
    session_timeout_ms=SESSION_MS, heartbeat_interval_ms=int(HEARTBEAT_S * 1_000), rebalance_timeout_ms=10_000
)
STOP_TIMEOUT_S: Final = 1.0
"""A request that hangs is left to end with the process."""
REFUSED_S: Final = 60.0
"""Time between two tries without the right to be a member."""


class GroupLeadership:
    """A membership, from `start` to `stop`.

    Args:
        connect: Makes a client of the cluster; called again after each failure.
        group_of: The id of the group, by that of the cluster.
        protocol_type: What the group is for.
        alone: Whether this process leads if it may not be a member.
        now_s: A monotonic clock.
    """

    def __init__(
        self,
        connect: Callable[[], AdminClient],
        group_of: Callable[[str], str],
        protocol_type: str,
        *,
        alone: bool = False,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.connect = connect
        self.group_of = group_of
        self.protocol_type = protocol_type
        self.alone = alone
        self.now_s = now_s
        self.cluster_id = ""
        """Known to a leader."""
        self.good_s = -inf
        """When the last good heartbeat of a leader was sent."""
        self.admin: AdminClient | None = None
        self.member: ClassicMember | None = None
        self.problem: str | None = None
        """Why it is no member; said once."""
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, name="odradek-leadership", daemon=True)

    @property
    def leads(self) -> bool:
        """Whether this process leads the group. Call from any thread."""
        return self.now_s() - self.good_s <= LAPSE_S

    def start(self) -> None:
        """Join the group soon."""
        self.thread.start()

    def stop(self) -> None:
        """Leave the group, so that another member leads at once; wait for that a moment."""
        self.stopping.set()
        if self.thread.is_alive():
            self.thread.join(STOP_TIMEOUT_S)

    def run(self) -> None:
        """Be a member until `stop`."""
        wait_s = 0.0
        while not self.stopping.wait(wait_s):
            wait_s = self.step()
        self.good_s = -inf
        if self.member is not None:
            try:
                self.member.leave()
            except ClientError as error:
                log.info("group is left by the end of the session", extra={"problem": str(error)})
        self.disconnect()

    def step(self) -> float:
        """Join the group or send a heartbeat; return the time until the next step, in seconds."""
        try:
            self.beat()
        except RequestFailed as error:
            return self.refused(error)
        except (ClientError, ConfigError) as error:
            self.tell(str(error))
            if self.member is None or not self.member.member_id:
                self.disconnect()
        except Exception:
            log.exception("membership failed")
            self.disconnect()
        else:
            self.problem = None
        return HEARTBEAT_S

    def beat(self) -> None:
        """Be a member now."""
        if self.member is None:
            self.admin = self.admin or self.connect()
            self.cluster_id = self.admin.cluster.metadata([]).cluster_id or ""
            self.member = ClassicMember(
                self.admin.cluster,
                self.group_of(self.cluster_id),
                TIMES,
                self.protocol_type,
                self.protocol_type,
            )
        member, sent_s = self.member, self.now_s()

        def shares(members: Iterable[JoinGroupResponseMember]) -> dict[str, bytes]:
            nonlocal sent_s
            sent_s = self.now_s()  # the rebalance has ended; the session begins with the next request
            return {each.member_id: b"" for each in members}

        if member.generation < 0:
            member.join_as(shares)
        else:
            member.heartbeat()
        self.good_s = sent_s if member.is_leader else -inf

    def refused(self, error: RequestFailed) -> float:
        """The brokers refuse a join or a heartbeat."""
        if self.member is None:
            self.tell(str(error))
            return HEARTBEAT_S
        if error.code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.member.generation = -1
            return 0.0
        if error.code in NOT_A_MEMBER:
            self.member.forget()
            self.good_s = -inf
            return 0.0
        if error.code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            right = f"no right READ on group {self.member.group_id}"
            self.tell(f"{right}, the lag is measured all the same" if self.alone else right)
            self.good_s = inf if self.alone else -inf
            return REFUSED_S
        self.tell(str(error))
        return HEARTBEAT_S

    def tell(self, problem: str) -> None:
        """Log a problem, unless it is known."""
        if self.problem != problem:
            self.problem = problem
            log.warning("not a member of the group of one of several", extra={"problem": problem})

    def disconnect(self) -> None:
        """Close the connections; the next step makes new ones and reads certificates and secrets again."""
        admin, self.admin, self.member = self.admin, None, None
        if admin is not None:
            admin.close()
