"""Kafka's texts of errors, where it has nothing more precise to say (`Errors` of Kafka 4.3)."""

from __future__ import annotations

MALFORMED_REQUEST = (
    "This most likely occurs because of a request being malformed by the client library or the message was "
    "sent to an incompatible broker. See the broker logs for more details."
)
"""The text of INVALID_REQUEST."""
UNKNOWN_PARTITION = "This server does not host this topic-partition."
"""The text of UNKNOWN_TOPIC_OR_PARTITION."""
INVALID_GROUP = "The group id is invalid."
"""The text of INVALID_GROUP_ID."""
NON_EMPTY = "The group is not empty."
"""The text of NON_EMPTY_GROUP."""
NO_AUTHORIZER = "No Authorizer is configured."
"""The text of SECURITY_DISABLED for changes of ACLs."""
