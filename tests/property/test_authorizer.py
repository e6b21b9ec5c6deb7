"""The authorizer decides the same after any history of ACLs as one that went through all that are left."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from odradek.plugin.authorizer import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from odradek.security.acl import Acl, AclEntry, ResourcePattern
from odradek.security.standard_authorizer import IMPLYING, StandardAuthorizer

PRINCIPALS, HOSTS = ["User:a", "User:b"], ["10.0.0.1", "10.0.0.2"]
OPERATIONS = [AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE]
names = st.text(alphabet="ab", min_size=1, max_size=4)
types = st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP])
acls = st.builds(
    Acl,
    st.builds(
        ResourcePattern,
        types,
        names | st.just(WILDCARD),
        st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    ),
    st.builds(
        AclEntry,
        st.sampled_from([*PRINCIPALS, WILDCARD_PRINCIPAL]),
        st.sampled_from([*HOSTS, WILDCARD]),
        st.sampled_from([*OPERATIONS, AclOperation.ALL]),
        st.sampled_from([AclPermission.ALLOW, AclPermission.DENY]),
    ),
)


def is_about(acl: Acl, resource_type: ResourceType, name: str) -> bool:
    pattern = acl.pattern
    if pattern.pattern_type is PatternType.PREFIXED:
        return pattern.resource_type is resource_type and name.startswith(pattern.name)
    return pattern.resource_type is resource_type and pattern.name in (name, WILDCARD)


def expected(
    stored: set[Acl],
    principal: str,
    host: str,
    operation: AclOperation,
    resource_type: ResourceType,
    name: str,
) -> bool:
    """The decision, by going through all ACLs."""
    about = [acl.entry for acl in stored if is_about(acl, resource_type, name)]
    own = [
        entry
        for entry in about
        if entry.principal in (principal, WILDCARD_PRINCIPAL) and entry.host in (host, WILDCARD)
    ]
    exact = (operation, AclOperation.ALL)
    including = (*exact, *IMPLYING.get(operation, ()))
    if any(entry.permission is AclPermission.DENY and entry.operation in exact for entry in own):
        return False
    return any(entry.permission is AclPermission.ALLOW and entry.operation in including for entry in own)


@given(
    added=st.lists(acls, max_size=12),
    removed=st.lists(acls, max_size=4),
    picks=st.sets(st.integers(0, 11)),
    principal=st.sampled_from(PRINCIPALS),
    host=st.sampled_from(HOSTS),
    operation=st.sampled_from(OPERATIONS),
    resource_type=types,
    name=names,
)
def test_decisions_follow_from_the_acls_that_are_left(
    added: list[Acl],
    removed: list[Acl],
    picks: set[int],
    principal: str,
    host: str,
    operation: AclOperation,
    resource_type: ResourceType,
    name: str,
) -> None:
    removed = removed + [added[pick] for pick in picks if pick < len(added)]
    authorizer = StandardAuthorizer()
    authorizer.add(added)
    question = (principal, host, operation, resource_type)
    authorizer.decide(*question, name)
    authorizer.decide(*question, None)
    authorizer.remove(removed)
    stored = set(added) - set(removed)
    fresh = StandardAuthorizer()
    fresh.add(stored)

    decision = authorizer.decide(*question, name)

    assert decision.is_allowed == expected(stored, *question, name)
    assert authorizer.decide(*question, None).is_allowed == fresh.decide(*question, None).is_allowed
    assert len(authorizer.acls) == len(stored)
    authorizer.remove(stored)
    assert not authorizer.acls.patterns
    assert not authorizer.acls.callers
