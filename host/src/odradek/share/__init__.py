"""Share groups: the delivery of single records to the members of a group (KIP-932)."""
