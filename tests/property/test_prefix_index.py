"""The prefixes that an index finds are those that a search through all of them finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from odradek.security.prefix_index import PrefixIndex

names = st.text(alphabet="ab*\u00e9", max_size=6)


@given(added=st.sets(names), removed=st.sets(names), name=names)
def test_the_prefixes_of_a_name_are_found_longest_first(
    added: set[str], removed: set[str], name: str
) -> None:
    index = PrefixIndex()
    for prefix in added:
        index.add(prefix)
    for prefix in removed & added:
        index.remove(prefix)

    found = list(index.of(name))

    stored = added - removed
    assert found == sorted((prefix for prefix in stored if name.startswith(prefix)), key=len, reverse=True)
    assert len(index) == len(stored)
