"""Print the path of amtool, built from the modules in ``go.mod``. It checks ``client-alerts.yml``.

    python -m contrib.alertmanager.amtool     # <cache>/odradek/amtool/<digest>/amtool

Go fetches the modules through its proxy and compiles for minutes the first time. Build output goes to
``$ODRADEK_AMTOOL_CACHE`` (default ``~/.cache/odradek/amtool``) and is rebuilt when ``go.mod`` has
changed. If Go or the modules are not available, the exit status is 3, with one line on stderr.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from contrib.go_program import QUICK, GoProgram, run

FOLDER = Path(__file__).resolve().parent
MODULE = "github.com/prometheus/alertmanager"


def build(folder: Path, program: Path) -> None:
    """Compile it from a copy of the module, which lacks the web page that a release embeds."""
    run(["go", "mod", "download", MODULE], folder)
    found = folder / "module.json"
    run(["sh", "-c", f"go list -m -json {MODULE} > {found.name}"], folder)
    source = folder / "source"
    shutil.copytree(json.loads(found.read_text())["Dir"], source, copy_function=shutil.copyfile)
    source.chmod(0o755)
    for each in source.rglob("*"):
        if each.is_dir():
            each.chmod(0o755)
    page = source / "ui/app/dist/index.html"
    page.parent.mkdir(parents=True)
    page.write_text("a build without a web page\n")
    run(["go", "mod", "edit", f"-replace={MODULE}=./source"], folder)
    run(["go", "build", *QUICK, "-o", str(program), f"{MODULE}/cmd/amtool"], folder, CGO_ENABLED="0")
    shutil.rmtree(source)


SOURCES = tuple(FOLDER / name for name in ("go.mod", "go.sum", "tools.go"))
AMTOOL = GoProgram(name="amtool", sources=SOURCES, build=build)

if __name__ == "__main__":
    raise SystemExit(AMTOOL.main())
