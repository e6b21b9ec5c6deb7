"""The SCRAM credentials of a host: their storage, and the rules for altering them.

After ScramControlManager.java and ScramImage.java (Kafka 4.3), in Kafka's words.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping

from odradek.metadata.credential_store import CredentialRow, CredentialStore
from odradek.metadata.store import MetadataStore
from odradek.security.scram import MAX_ITERATIONS, MIN_ITERATIONS, ScramMechanism
from odradek.security.scram_credential import ScramCredential, salted_credential
from odradek.settings.state_limit import ANY_NAME, NameLimit, StateLimit
from odradek.waiting.clock import Clock
from odradek.waiting.steps import result_of
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT32_MAX
from odradek.wire.messages.alter_user_scram_credentials import (
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

MAX_CHANGES = 10_000
"""Limit per request (QuorumController.MAX_RECORDS_PER_USER_OP)."""
MAX_SALT_BYTES = 1024
"""Limited because the host sends the salt to every client that starts to authenticate."""
AT_A_TIME = 100
"""Changes that are stored in one step, which is one transaction."""
Change = ScramCredentialDeletion | ScramCredentialUpsertion


class Credentials:
    """The credentials of all users, in memory and in the metadata file."""

    def __init__(
        self,
        metadata: MetadataStore,
        names: NameLimit = ANY_NAME,
        max_users: int = INT32_MAX,
        clock: Clock | None = None,
    ) -> None:
        self.metadata = metadata
        self.store = CredentialStore(metadata)
        self.names = names
        self.by_user: dict[str, dict[ScramMechanism, ScramCredential]] = {}
        self.limit = StateLimit("SCRAM users", "scram.users.max", max_users, self.by_user.__len__, clock)
        for row in self.store.credentials():
            credential = ScramCredential(row.salt, row.stored_key, row.server_key, row.iterations)
            self.by_user.setdefault(row.user, {})[ScramMechanism(row.mechanism)] = credential

    def credential(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None:
        """The credential of a user for a mechanism; None without one. Call from any thread."""
        return self.by_user.get(user, {}).get(mechanism)

    def users(self) -> list[str]:
        """The names of all users with a credential, sorted."""
        return sorted(self.by_user)

    def of_user(self, user: str) -> Mapping[ScramMechanism, ScramCredential]:
        """The credentials of one user.

        Raises:
            ApiError: RESOURCE_NOT_FOUND.
        """
        if user not in self.by_user:
            raise ApiError(
                ErrorCode.RESOURCE_NOT_FOUND,
                f"Attempt to describe a user credential that does not exist: {user}",
            )
        return self.by_user[user]

    def alter(
        self, deletions: Iterable[ScramCredentialDeletion], upsertions: Iterable[ScramCredentialUpsertion]
    ) -> dict[str, ApiError | None]:
        """Set and remove credentials; see `alter_in_steps`."""
        return result_of(self.alter_in_steps(deletions, upsertions))

    def alter_in_steps(
        self, deletions: Iterable[ScramCredentialDeletion], upsertions: Iterable[ScramCredentialUpsertion]
    ) -> Generator[None, None, dict[str, ApiError | None]]:
        """Set and remove credentials; store all legal changes, some at a time.

        Returns:
            The refusal of each user, or None.

        Raises:
            ApiError: POLICY_VIOLATION: too many changes; nothing has changed.
        """
        outcomes: dict[str, ApiError | None] = {}
        accepted: dict[str, Change] = {}
        changes: list[Change] = [*deletions, *upsertions]
        if len(changes) > MAX_CHANGES:
            raise ApiError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
        for change in changes:
            if outcomes.get(change.name) is None:
                outcomes[change.name] = error = self.fault(change, accepted)
                if error is None:
                    accepted[change.name] = change
                else:
                    accepted.pop(change.name, None)
            self.limit.reserved = 0
            yield
        legal = list(accepted.values())
        for start in range(0, len(legal), AT_A_TIME):
            self.change(legal[start : start + AT_A_TIME], outcomes)
            self.limit.reserved = 0
            yield
        return outcomes

    def change(self, changes: Iterable[Change], outcomes: dict[str, ApiError | None]) -> None:
        """Store some changes and apply them, unless other requests have made them illegal."""
        made: list[tuple[Change, ScramCredential | None]] = []
        for change in changes:
            outcomes[change.name] = error = self.fault(change, {})
            if error is None:
                made.append((change, credential_of(change)))
        try:
            with self.metadata.transaction():
                for change, credential in made:
                    self.write(change, credential)
        except ApiError as error:
            refusal = error.kept()
            outcomes.update((change.name, refusal) for change, _ in made)
            return
        for change, credential in made:
            self.remember(change, credential)

    def fault(self, change: Change, accepted: Mapping[str, Change]) -> ApiError | None:
        """The fault of a change; None if it is legal. Kafka takes one change per user and request."""
        if change.name in accepted:
            return ApiError(
                ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
            )
        if not change.name:
            return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
        if change.mechanism not in set(ScramMechanism):
            return ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
        if isinstance(change, ScramCredentialUpsertion):
            return unacceptable(change) or self.beyond_limits(change.name)
        if self.credential(ScramMechanism(change.mechanism), change.name) is None:
            return ApiError(
                ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
            )
        return None

    def beyond_limits(self, user: str) -> ApiError | None:
        """The refusal of a new user whose name is too long or for whom there is no room, or None."""
        if user in self.by_user:
            return None
        try:
            self.names.check("user name", user)
            self.limit.reserve()
        except ApiError as refusal:
            return refusal.kept()
        return None

    def write(self, change: Change, made: ScramCredential | None) -> None:
        """Store a change."""
        if made is None:
            self.store.delete_credential(change.name, change.mechanism)
            return
        self.store.put_credential(
            CredentialRow(
                change.name, change.mechanism, made.salt, made.stored_key, made.server_key, made.iterations
            )
        )

    def remember(self, change: Change, made: ScramCredential | None) -> None:
        """Apply a stored change in memory."""
        mechanism = ScramMechanism(change.mechanism)
        credentials = dict(self.by_user.get(change.name, {}))  # a copy: other threads read the old one
        if made is None:
            del credentials[mechanism]
        else:
            credentials[mechanism] = made
        if credentials:
            self.by_user[change.name] = credentials
        else:
            del self.by_user[change.name]


def credential_of(change: Change) -> ScramCredential | None:
    """The stored credential of a new password; None for a deletion."""
    if isinstance(change, ScramCredentialDeletion):
        return None
    mechanism = ScramMechanism(change.mechanism)
    return salted_credential(mechanism, change.salted_password, change.salt, change.iterations)


def unacceptable(change: ScramCredentialUpsertion) -> ApiError | None:
    """The fault of a new credential; None if it is legal."""
    if change.iterations < MIN_ITERATIONS:
        return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > MAX_ITERATIONS:
        return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if len(change.salt) > MAX_SALT_BYTES:
        return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Salt is too long")
    if not change.salted_password:
        return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka answers so: it is no key
    return None
