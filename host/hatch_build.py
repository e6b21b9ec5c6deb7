"""Extras that install the sibling distributions: their folders in a checkout, pins in a release.

``python -m build`` makes the wheel from the sdist, where the folders are gone, so their presence cannot be
the switch: ``ODRADEK_RELEASE=1`` is.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class SiblingExtras(MetadataHookInterface):  # type: ignore[misc]
    """Fills ``optional-dependencies`` from the tables ``siblings`` and ``extras`` of this hook.

    The extra ``all`` has every sibling but those that stand ``apart``, with ``more`` of their own extras;
    ``dev`` has the extras ``test`` and ``oauth``.
    """

    def update(self, metadata: dict[str, Any]) -> None:
        host, version = metadata["name"], metadata["version"]
        extras = {extra: list(requirements) for extra, requirements in self.config["extras"].items()}
        siblings = {
            extra: self.requirement(f"{host}-{extra}", folder, version)
            for extra, folder in self.config["siblings"].items()
        }
        together = [siblings[extra] for extra in siblings if extra not in self.config["apart"]["extras"]]
        extras["dev"] += [*extras["test"], *extras["oauth"], *extras["tls"]]
        extras["all"] = [*together, *extras["demo"], *extras["fast"], *extras["oauth"], *extras["tls"]]
        extras["all"] += [
            self.requirement(f"{host}-{extra}[{more}]", self.config["siblings"][extra], version)
            for extra, more in self.config["more"].items()
        ]
        extras |= {extra: [requirement] for extra, requirement in siblings.items()}
        for extra, names in self.config["needs"].items():
            extras[extra] += [siblings[name] for name in names]
        metadata["optional-dependencies"] = extras

    def requirement(self, name: str, folder: str, version: str) -> str:
        if os.environ.get("ODRADEK_RELEASE"):
            return f"{name}=={version}"
        return f"{name} @ {(Path(self.root) / folder).as_uri()}"
