"""What goes wrong between the clients and the brokers of a gateway, as its pairs see it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from odradek.findings.incidents import FAILED_LOGINS, THROTTLED
from odradek.gateway.observation.pair_account import key_of
from odradek.gateway.pair_identity import PairIdentity
from odradek.telemetry.client_key import ClientKey
from odradek.telemetry.group_incidents import Asked, note_member
from odradek.telemetry.incidents import Incidents
from odradek.telemetry.topic_errors import note_topic_error
from odradek.wire.api_names import api_name


class PairIncidents:
    """Tells the incidents of all pairs.

    Args:
        incidents: Counts them.
    """

    def __init__(self, incidents: Incidents) -> None:
        self.incidents = incidents

    def login_refused(self, identity: PairIdentity, mechanism: str, user: str | None) -> None:
        """The broker has refused what a client has proved itself with."""
        labels = {"mechanism": mechanism, "user": user or "", "address": identity.address}
        self.incidents.add(key_of(identity), FAILED_LOGINS, labels)

    def held_back(self, identity: PairIdentity, quota: dict[str, str], time_ms: int) -> None:
        """A quota of the gateway holds a client back for some milliseconds."""
        self.incidents.lasts(key_of(identity), THROTTLED, {"api": "", **quota}, time_ms)

    def throttled(self, key: ClientKey, api_key: int, time_ms: int) -> None:
        """The broker holds a client back for some milliseconds; it does not say by which quota."""
        labels = {"api": api_name(api_key), "quota": "", "entity": "", "limit": ""}
        self.incidents.lasts(key, THROTTLED, labels, time_ms)

    def member(self, key: ClientKey, asked: Asked, code: int, pair: Hashable) -> None:
        """A member of a group has an answer."""
        note_member(self.incidents, key, asked, code, pair)

    def closed(self, pair: Hashable) -> None:
        """The pair of a member has ended."""
        self.incidents.stuck.closed(pair)

    def topics(self, key: ClientKey, api_key: int, errors: Iterable[tuple[str, int]]) -> None:
        """A response to a client has topics or partitions with errors."""
        for topic, code in errors:
            note_topic_error(self.incidents, key, api_key, code, topic)
