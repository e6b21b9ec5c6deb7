"""Scenarios of requests about ACLs, to a node without an authorizer."""

from __future__ import annotations

from contrib.capture.golden import Recorder, Scenario
from contrib.capture.host_requests import request

from odradek.wire.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from odradek.wire.messages.describe_acls import DescribeAclsRequest

ANY, TOPIC, READ, ALLOW = 1, 2, 3, 3


def without_authorizer(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        everything = DescribeAclsRequest(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=ANY,
            principal_filter=None,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
        say.ask("describe all", request(everything, version))
        acl = AclCreation(
            resource_type=TOPIC,
            resource_name="t",
            principal="User:a",
            host="*",
            operation=READ,
            permission_type=ALLOW,
        )
        wrong = AclCreation(resource_type=99, principal="a", operation=99, permission_type=99)
        for label, creations in {"two": [acl, acl], "a wrong one": [wrong], "none": []}.items():
            say.ask(f"create {label}", request(CreateAclsRequest(creations=creations), version))
        any_acl = DeleteAclsFilter(
            resource_type_filter=ANY, pattern_type_filter=ANY, operation=ANY, permission_type=ANY
        )
        for label, filters in {"two filters": [any_acl, any_acl], "no filter": []}.items():
            say.ask(f"delete by {label}", request(DeleteAclsRequest(filters=filters), version))

    return scenario


SCENARIOS: dict[str, tuple[str, Scenario]] = {
    f"describe_acls_v{version}_disabled": ("ACLs without an authorizer", without_authorizer(version))
    for version in (1, 2, 3)
}
