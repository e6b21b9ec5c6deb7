"""kafka-acls.sh against a host without an authorizer; the expectations hold for Apache Kafka 4.3.1 too."""

from __future__ import annotations

import pytest

from integration.java.console_tools import ConsoleTools

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
DISABLED = "org.apache.kafka.common.errors.SecurityDisabledException: No Authorizer is configured"
ACL = ("--topic", "t", "--operation", "Read")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--list",),
        ("--list", "--topic", "t"),
        ("--add", "--allow-principal", "User:a", *ACL),
        ("--remove", "--allow-principal", "User:a", *ACL, "--force"),
    ],
    ids=["list", "list of a topic", "add", "remove"],
)
def test_the_tool_says_that_there_is_no_authorizer(tools: ConsoleTools, arguments: tuple[str, ...]) -> None:
    refused = tools.run("kafka-acls", *arguments)

    assert refused.status == 1
    assert DISABLED in refused.said
