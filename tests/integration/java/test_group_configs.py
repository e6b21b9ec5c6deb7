"""kafka-configs.sh for groups against the host; Apache Kafka 4.3.1 meets the same expectations."""

from __future__ import annotations

import pytest

from integration.java.host_process import HostProcess
from integration.java.jvm import Jvm

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
MAIN = "kafka.admin.ConfigCommand"


def test_a_group_has_its_own_session_timeout(jvm: Jvm, host: HostProcess) -> None:
    group = (
        MAIN,
        "--bootstrap-server",
        host.bootstrap,
        "--entity-type",
        "groups",
        "--entity-name",
        "billing",
    )
    altered = jvm.run(*group, "--alter", "--add-config", "consumer.session.timeout.ms=60000")

    described = jvm.run(*group, "--describe")
    refused = jvm.run(*group, "--alter", "--add-config", "consumer.session.timeout.ms=1000")

    assert (altered.status, altered.out) == (0, "Completed updating config for group billing.\n"), (
        altered.said
    )
    synonyms = (
        "synonyms={DYNAMIC_GROUP_CONFIG:consumer.session.timeout.ms=60000, "
        "DEFAULT_CONFIG:group.consumer.session.timeout.ms=45000}"
    )
    assert described.out.splitlines() == [
        "Dynamic configs for group billing are:",
        f"  consumer.session.timeout.ms=60000 sensitive=false {synonyms}",
    ]
    assert refused.status == 1
    assert "must be greater than or equal to group.consumer.min.session.timeout.ms" in refused.said
