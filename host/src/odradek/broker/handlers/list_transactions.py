"""ListTransactions v0-v2 (KIP-664, KIP-994, KIP-1152).

Behavior:
    * All transactional ids that pass every given filter and that the client may see. Unknown states are
      listed in the answer and match nothing.
Versions:
    * v1: only transactions that have been open for longer than DurationFilter ms; an id without any
      transaction passes, as in Kafka. v2: only ids that a regular expression (RE2) matches completely; an
      invalid one is INVALID_REGULAR_EXPRESSION, also one that is too large.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from odradek.bounds.bounded_regex import RegexBounds, RegexError, compiled_within
from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.transaction.transaction_metadata import TransactionMetadata
from odradek.transaction.transaction_state import TransactionState
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from odradek.wire.messages.list_transactions import TransactionState as ListedTransaction

STATES = frozenset(map(str, TransactionState))
PATTERN_BOUNDS = RegexBounds()


@answers(ListTransactionsRequest, each="transaction_states", droppable=True)
def list_transactions(
    request: ListTransactionsRequest, context: RequestContext, broker: Broker
) -> Generator[ListedTransaction | None, None, ListTransactionsResponse]:
    passes = filters(request, broker.clock.now_ms())
    rights = broker.authorization.rights(context, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)
    for known in list(broker.transactions):
        if not passes(known) or not rights.allows(known.transactional_id):
            yield None
            continue
        yield ListedTransaction(
            transactional_id=known.transactional_id,
            producer_id=known.producer_id,
            transaction_state=str(known.state),
        )
    return ListTransactionsResponse(
        unknown_state_filters=[state for state in request.state_filters if state not in STATES]
    )


def filters(request: ListTransactionsRequest, now_ms: int) -> Callable[[TransactionMetadata], bool]:
    """The filters of the request.

    Raises:
        ApiError: INVALID_REGULAR_EXPRESSION.
    """
    states, producer_ids = set(request.state_filters), set(request.producer_id_filters)
    matches = full_match(request.transactional_id_pattern)
    duration_ms = request.duration_filter

    def passes(known: TransactionMetadata) -> bool:
        return (
            (not states or str(known.state) in states)
            and (not producer_ids or known.producer_id in producer_ids)
            and (duration_ms < 0 or now_ms - known.start_ms > duration_ms)
            and matches(known.transactional_id)
        )

    return passes


def full_match(pattern: str | None) -> Callable[[str], bool]:
    """Whether a pattern matches a complete text; no pattern matches every text."""
    if not pattern:
        return lambda _: True
    try:
        compiled = compiled_within(pattern, PATTERN_BOUNDS)
    except RegexError as error:
        raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error)) from None
    return lambda text: compiled.fullmatch(text) is not None
