"""All cases: requests of callers who lack rights.

`contrib/capture/authorization.py` asks Apache Kafka with its StandardAuthorizer, and
``tests/conformance/test_authorization_golden.py`` asks the host.
"""

from __future__ import annotations

from support.authorization import cluster, groups, records, topics

CASES = [*records.CASES, *topics.CASES, *groups.CASES, *cluster.CASES]
