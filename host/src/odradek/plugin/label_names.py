"""Names of labels, for destinations that make labels of attributes.

Prometheus and its relatives have one set of labels for a series: that of the data point's attributes and of
its Resource's, with underscores for other characters. Two attributes of one name are then one label, and the
value of one is lost. Precedence: the data point's own, then the client's labels, then the host's. The later
one is renamed. All destinations use this rule, so that they agree on the labels of a series.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final

from odradek.plugin.context_labels import CLIENT_LABELS

INVALID: Final = re.compile(r"[^a-zA-Z0-9_]")
RESERVED: Final = frozenset(("__name__", "le", "quantile"))
KNOWN: Final = {"node_id": "broker_node_id"}
"""New names that are not made with a prefix: KIP-714 calls the broker ``node_id``."""


def label_name(attribute: str) -> str:
    """The name of the label that Prometheus makes of an attribute."""
    name = INVALID.sub("_", attribute)
    if name in RESERVED:
        return f"attribute_{name}"
    return f"key_{name}" if name[:1].isdigit() else name


def distinct_names(names: Iterable[str], taken: AbstractSet[str]) -> dict[str, str]:
    """Names for the labels of a client or host which the data point's labels, and each other, leave free.

    Args:
        names: Attributes, the client's before the host's.
        taken: The names of the data point's labels.

    Returns:
        The name of the label by attribute, in the given order.
    """
    wanted: dict[str, str] = {}
    found: dict[str, str] = {}
    for attribute in names:
        name = label_name(attribute)
        found[attribute] = name
        if name not in taken:
            wanted.setdefault(name, attribute)
    used = taken | wanted.keys()
    for attribute, name in found.items():
        if wanted.get(name) != attribute:
            found[attribute] = free_name(name, used)
            used |= {found[attribute]}
    return found


def free_name(name: str, used: AbstractSet[str]) -> str:
    """The new name of a label whose name is used."""
    free = KNOWN.get(name, "")
    prefix = "client" if name in CLIENT_LABELS else "host"
    while not free or free in used:
        name = free = f"{prefix}_{name}"
    return free
