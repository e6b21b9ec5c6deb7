"""Print the path of amtool, built from the modules in ``go.mod``.

    python -m contrib.alertmanager.amtool     # <cache>/odradek/amtool/<digest>/amtool

It checks ``client-alerts.yml``. See ``alertmanager.py`` for what it needs.
"""

from __future__ import annotations

from functools import partial

from contrib.alertmanager.alertmanager import SOURCES, build
from contrib.go_program import GoProgram

AMTOOL = GoProgram(name="amtool", sources=SOURCES, build=partial(build, command="amtool"))

if __name__ == "__main__":
    raise SystemExit(AMTOOL.main())
