"""The ACLs of a host: their storage, and the rules for changing them.

After AclApis.scala and AclControlManager.java (Kafka 4.4), in Kafka's words.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from odradek.metadata.acl_store import AclRow, AclStore
from odradek.metadata.store import MetadataStore
from odradek.plugin.authorizer import (
    CLUSTER_NAME,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from odradek.security.acl import SUPPORTED, Acl, AclEntry, AclFilter, ResourcePattern
from odradek.settings.state_limit import ANY_NAME, NameLimit, StateLimit
from odradek.waiting.clock import Clock
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT32_MAX

if TYPE_CHECKING:
    from odradek.security.standard_authorizer import StandardAuthorizer

MAX_CHANGES = 10_000
"""Limit per request (QuorumController.MAX_RECORDS_PER_USER_OP)."""
AT_A_TIME = 200
"""Patterns and ACLs that are looked at in one step."""
STORED_AT_A_TIME = 200
"""ACLs that are stored in one step, which is one transaction."""
PATTERN_TYPES = (PatternType.LITERAL, PatternType.PREFIXED)
PERMISSIONS = (AclPermission.DENY, AclPermission.ALLOW)


class Acls:
    """All ACLs, in the metadata file and in the authorizer."""

    def __init__(
        self,
        metadata: MetadataStore,
        authorizer: StandardAuthorizer,
        names: NameLimit = ANY_NAME,
        max_acls: int = INT32_MAX,
        clock: Clock | None = None,
    ) -> None:
        self.metadata = metadata
        self.store = AclStore(metadata)
        self.authorizer = authorizer
        self.index = authorizer.acls
        self.names = names
        self.limit = StateLimit("ACLs", "acls.max", max_acls, self.index.__len__, clock)
        authorizer.add(map(stored_acl, self.store.acls()))

    def create_in_steps(self, acls: Iterable[Acl]) -> Generator[None, None, list[ApiError | None]]:
        """Add all legal ACLs, denials first: `STORED_AT_A_TIME` in one transaction.

        Returns:
            The refusal of each ACL, or None; an ACL that is there already is not refused.

        Raises:
            ApiError: POLICY_VIOLATION: too many new ACLs; nothing has changed. KAFKA_STORAGE_ERROR: nothing
                of the current transaction has changed; to repeat the request adds what is missing.
        """
        outcomes: list[ApiError | None] = []
        new: dict[Acl, None] = {}
        for acl in acls:
            error = fault(acl)
            if error is None and acl not in self.index and acl not in new:
                error = self.beyond_limits(acl, len(new))
                if error is None:
                    new[acl] = None
            outcomes.append(error)
            if len(new) > MAX_CHANGES:
                raise ApiError(
                    ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
                )
            yield
        self.limit.check(sum(acl not in self.index for acl in new))  # other requests ran in between
        for part in parts(new, first=AclPermission.DENY):
            with self.metadata.transaction():
                self.store.put_acls(map(acl_row, part))
            self.authorizer.add(part)
            yield
        return outcomes

    def beyond_limits(self, acl: Acl, more: int) -> ApiError | None:
        """The refusal of a new ACL with a text that is too long or for which there is no room, or None."""
        try:
            self.names.check("resource name of the ACL", acl.pattern.name)
            self.names.check("principal of the ACL", acl.entry.principal)
            self.names.check("host of the ACL", acl.entry.host)
            self.limit.check(more + 1)
        except ApiError as refusal:
            return refusal.kept()
        return None

    def delete_in_steps(
        self, filters: Sequence[AclFilter]
    ) -> Generator[None, None, list[ApiError | list[Acl]]]:
        """Remove the ACLs that any of the filters selects, permissions first: `STORED_AT_A_TIME` in one
        transaction.

        Returns:
            For each filter its ACLs, or its refusal. Two filters may select the same ACL.

        Raises:
            ApiError: INVALID_REQUEST: too many ACLs; nothing has changed. KAFKA_STORAGE_ERROR: nothing of the
                current transaction has changed.
        """
        outcomes: list[ApiError | list[Acl]] = []
        count = 0
        for wanted in filters:
            found: ApiError | list[Acl] | None = filter_fault(wanted)
            if found is None:
                found = []
                for part in self.selected(wanted):
                    found += part
                    if count + len(found) > MAX_CHANGES:
                        raise ApiError(
                            ErrorCode.INVALID_REQUEST,
                            f"Cannot remove more than {MAX_CHANGES} acls in a single delete operation.",
                        )
                    yield
                count += len(found)
            outcomes.append(found)
            yield
        gone = dict.fromkeys(acl for found in outcomes if isinstance(found, list) for acl in found)
        for removed in parts(gone, first=AclPermission.ALLOW):
            with self.metadata.transaction():
                self.store.delete_acls(map(acl_row, removed))
            self.authorizer.remove(removed)
            yield
        return outcomes

    def selected(self, wanted: AclFilter) -> Iterator[list[Acl]]:
        """Yield the ACLs that a filter selects, by pattern, in parts that may be empty."""
        found: list[Acl] = []
        looked_at = 0
        for pattern in self.index.patterns_selected(wanted):
            looked_at += 1
            for entry in self.entries(pattern) if wanted.selects_pattern(pattern) else ():
                looked_at += 1
                if wanted.selects_entry(entry):
                    found.append(Acl(pattern, entry))
            if looked_at >= AT_A_TIME:
                yield found
                found, looked_at = [], 0
        yield found

    def entries(self, pattern: ResourcePattern) -> Iterable[AclEntry]:
        """The entries of a pattern, which may have gone."""
        acls = self.index.patterns.get(pattern)
        return () if acls is None else acls.entries


def parts(acls: Iterable[Acl], first: AclPermission) -> Iterator[Sequence[Acl]]:
    """Yield ACLs in the order in which no caller may do too much in between, `STORED_AT_A_TIME` at a time."""
    ordered = sorted(acls, key=lambda acl: acl.entry.permission is not first)
    for start in range(0, len(ordered), STORED_AT_A_TIME):
        yield ordered[start : start + STORED_AT_A_TIME]


def fault(acl: Acl) -> ApiError | None:
    """The fault of a new ACL, in Kafka's order of checks; None if it is legal."""
    pattern, entry = acl
    is_cluster = pattern.resource_type is ResourceType.CLUSTER
    checks = (
        (
            not is_cluster or pattern.name == CLUSTER_NAME,
            f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}",
        ),
        (pattern.name, "Invalid empty resource name"),
        (pattern.resource_type in SUPPORTED, f"Invalid resourceType {pattern.resource_type.name}"),
        (pattern.pattern_type in PATTERN_TYPES, f"Invalid patternType {pattern.pattern_type.name}"),
        (entry.operation >= AclOperation.ALL, f"Invalid operation {entry.operation.name}"),
        (entry.permission in PERMISSIONS, f"Invalid permissionType {entry.permission.name}"),
        (
            ":" in entry.principal,
            f"Could not parse principal from `{entry.principal}` "
            "(no colon is present separating the principal type from the principal name)",
        ),
        (entry.host, "Host pattern cannot be null or empty"),
    )
    problem = next((text for is_legal, text in checks if not is_legal), None)
    return None if problem is None else ApiError(ErrorCode.INVALID_REQUEST, problem)


def filter_fault(wanted: AclFilter) -> ApiError | None:
    """The fault of a filter of DeleteAcls; None if it is legal."""
    if ResourceType.UNKNOWN is wanted.resource_type or PatternType.UNKNOWN is wanted.pattern_type:
        return ApiError(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
    if AclOperation.UNKNOWN is wanted.operation or AclPermission.UNKNOWN is wanted.permission:
        return ApiError(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")
    return None


def acl_row(acl: Acl) -> AclRow:
    """An ACL as it is stored."""
    return (*acl.pattern, *acl.entry)


def stored_acl(row: AclRow) -> Acl:
    resource_type, name, pattern_type, principal, host, operation, permission = row
    return Acl(
        ResourcePattern(ResourceType(resource_type), name, PatternType(pattern_type)),
        AclEntry(principal, host, AclOperation(operation), AclPermission(permission)),
    )
