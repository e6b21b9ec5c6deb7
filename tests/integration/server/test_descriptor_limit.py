from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.ci

PROGRAM = """
import resource, sys
from odradek.process.limits import descriptor_limit, raise_descriptor_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
raise_descriptor_limit()
print(descriptor_limit())
"""


@pytest.mark.parametrize(("soft", "hard"), [(64, 500), (500, 500)])
def test_a_host_has_as_many_descriptors_as_its_user_may_have(soft: int, hard: int) -> None:
    command = [sys.executable, "-c", PROGRAM, str(soft), str(hard)]

    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert shown == "500\n"
