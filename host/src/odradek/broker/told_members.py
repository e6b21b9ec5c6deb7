"""The members of a host's groups, as the incidents of their clients tell them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from odradek.findings.incidents import LOST
from odradek.plugin.context import UNKNOWN, RequestContext
from odradek.telemetry.client_key import ClientKey, key_of_request
from odradek.telemetry.goodbyes import KEEPS_ITS_PLACE, places
from odradek.telemetry.group_incidents import Asked, note_member
from odradek.telemetry.incidents import Incidents


def tell_member(incidents: Incidents, context: RequestContext, request: Any, code: int) -> None:
    """Tell a request of a member and its answer.

    Args:
        incidents: Are told.
        context: The request's.
        request: One of `group_incidents.OF_MEMBERS`.
        code: The error code of the answer.
    """
    leaving = getattr(request, "members", None) or ()
    asked = Asked(
        api_key=context.api_key,
        group_id=request.group_id,
        member_id=leaving[0].member_id if leaving else request.member_id,
        epoch=getattr(request, "member_epoch", 0),
        reason=leaving[0].reason if leaving else getattr(request, "reason", None),
    )
    connection_id = context.connection.connection_id
    note_member(incidents, key_of_request(context), asked, code, connection_id, connection_id)


def expulsion_teller(
    incidents: Incidents, members: Callable[[], Iterable[tuple[str, str]]]
) -> Callable[[str, str], None]:
    """Tells that a member's session has ended, unless its client is followed otherwise.

    A client that pushes or is observed is told to be lost with its connections. One that has started again
    has another member in its place.

    Args:
        incidents: Are told.
        members: Client id and address of all live members.
    """

    def tell(client_id: str, client_host: str) -> None:
        (place,) = places([(client_id, client_host)])
        is_followed = incidents.goodbyes.follows(place) or incidents.observes(place)
        if is_followed or KEEPS_ITS_PLACE.search(client_id):
            return
        key = ClientKey("", client_id, place.address, UNKNOWN, UNKNOWN)
        if place not in places(members()):
            incidents.add(key, LOST, {"why": "session"})

    return tell
