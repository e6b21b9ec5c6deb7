"""The addresses of pages about one thing."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote


def client_link(instance_id: str) -> str:
    """The page of a client; empty if its instance is not known."""
    return link("clients", instance_id)


def group_link(name: str) -> str:
    """The page of a group; empty without one."""
    return link("groups", name)


def node_link(name: str) -> str:
    """The page of a node."""
    return link("nodes", name)


def program_link(url: str) -> str:
    """The page of a gateway or a host, by the URL of its metrics."""
    scheme, _, address = url.partition("://")
    return link(f"programs/{scheme}", address)


def programs_link(urls: Sequence[str]) -> str:
    """The page of a gateway or a host, or of all if it is one of several; empty for none."""
    return "/programs" if len(urls) > 1 else program_link("".join(urls))


def topic_link(name: str) -> str:
    """The page of a topic."""
    return link("topics", name)


def link(page: str, name: str) -> str:
    return f"/{page}/{quote(name, safe='')}" if name else ""
