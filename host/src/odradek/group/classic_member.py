"""One member of a classic group."""

from __future__ import annotations

from dataclasses import dataclass, field

from odradek.waiting.clock import TimerTask
from odradek.waiting.deferred import Deferred
from odradek.wire.messages.join_group import JoinGroupResponse
from odradek.wire.messages.sync_group import SyncGroupResponse

Protocols = tuple[tuple[str, bytes], ...]
"""Names and metadata, in the member's order of preference."""


@dataclass(slots=True, kw_only=True, eq=False)
class ClassicMember:
    """A member; after ClassicGroupMember.java. Metadata and assignment are opaque bytes."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    """The host as shown by Describe: ``/127.0.0.1``."""
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    join: Deferred[JoinGroupResponse] | None = None
    """The response to the JoinGroup that is parked."""
    sync: Deferred[SyncGroupResponse] | None = None
    """The response to the SyncGroup that is parked."""
    is_new: bool = False
    """Whether the member has not been in a generation yet. It does not know its member id, so it cannot send
    heartbeats, and the host cannot tell whether its client is still there.
    """
    session: TimerTask | None = field(default=None, repr=False)

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def protocol_names(self) -> set[str]:
        return {name for name, _ in self.protocols}

    def metadata(self, protocol: str) -> bytes:
        """The member's metadata for a protocol; empty if it does not support it."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: set[str]) -> str:
        """The first protocol of the member that is a candidate."""
        return next(name for name, _ in self.protocols if name in candidates)

    def end_session(self) -> None:
        """Stop the session timer."""
        if self.session is not None:
            self.session.cancel()
            self.session = None
