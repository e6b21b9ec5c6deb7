from __future__ import annotations

import click
import pytest

from odradek.cli.config_list import parse_config_list


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("a=1,b=2", {"a": "1", "b": "2"}),
        (" a = 1 , b = 2 ", {"a": "1", "b": "2"}),
        ("a=", {"a": ""}),
        ("a=[]", {"a": ""}),
        ("cleanup.policy=[compact,delete],x=1", {"cleanup.policy": "compact,delete", "x": "1"}),
        ("match=[client_id=[a-z]+,client_source_port=1]", {"match": "client_id=[a-z]+,client_source_port=1"}),
        ("match=client_id=x[0-9]", {"match": "client_id=x[0-9]"}),
        ("match=[a]x[b]", {"match": "[a]x[b]"}),
        ("a=]", {"a": "]"}),
        ("a=1,a=2", {"a": "2"}),
    ],
)
def test_commas_separate_except_in_brackets(text: str, expected: dict[str, str]) -> None:
    assert parse_config_list(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found ''"),
        ("a", "expected key=value or key=\\[value1,value2\\], found 'a'"),
        ("a=1,", "found ''"),
        ("=1", "found '=1'"),
        ("cleanup.policy=compact,delete", "found 'delete'"),
        ("a=[b,c", "missing \\]"),
    ],
)
def test_a_malformed_list_of_configs_is_refused(text: str, message: str) -> None:
    with pytest.raises(click.UsageError, match=message):
        parse_config_list(text)
