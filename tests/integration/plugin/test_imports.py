"""The modules that importing the rooms of plugins loads, in a new process."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.ci


def test_the_rooms_of_plugins_load_protobuf_on_first_use() -> None:
    program = (
        "import sys, odradek.plugin, odradek.otlp, odradek.topic, odradek.findings\n"
        "heavy = lambda: [name for name in sys.modules if name.startswith(('google', 'opentelemetry'))]\n"
        "assert heavy() == [], heavy()\n"
        "odradek.otlp.merged_scopes(b'')\n"
        "assert 'google.protobuf' in sys.modules\n"
        "assert 'opentelemetry' not in sys.modules\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
