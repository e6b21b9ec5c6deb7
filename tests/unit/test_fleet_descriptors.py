"""The limit of open files that a fleet of clients asks for."""

from __future__ import annotations

import resource
from unittest import mock

import pytest
from contrib.fleet.descriptors import allow_descriptors


@pytest.mark.parametrize(
    ("limits", "wanted", "new"),
    [
        ((1024, 4096), 2000, (2000, 4096)),
        ((1024, 4096), 67, None),
        ((1024, 4096), 1024, None),
        ((1024, 1024), 2000, (2000, 2000)),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), 67, None),
    ],
)
def test_the_limit_is_raised_and_never_lowered(
    limits: tuple[int, int], wanted: int, new: tuple[int, int] | None
) -> None:
    with (
        mock.patch.object(resource, "getrlimit", return_value=limits),
        mock.patch.object(resource, "setrlimit") as changed,
    ):
        allow_descriptors(wanted)

    assert [each.args[1] for each in changed.call_args_list] == ([] if new is None else [new])
