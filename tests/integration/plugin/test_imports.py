"""The modules that importing `odradek.plugin` loads, in a new process."""

from __future__ import annotations

import subprocess
import sys


def test_the_plugin_room_loads_protobuf_on_first_use() -> None:
    program = (
        "import sys, odradek.plugin\n"
        "heavy = lambda: [name for name in sys.modules if name.startswith(('google', 'opentelemetry'))]\n"
        "assert heavy() == [], heavy()\n"
        "odradek.plugin.merged_scopes(b'')\n"
        "assert 'google.protobuf' in sys.modules\n"
        "assert 'opentelemetry' not in sys.modules\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
