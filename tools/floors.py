"""The lowest versions that pyproject.toml allows, as constraints for pip.

    python -m tools.floors [EXTRA ...] > floors.txt

Without extras: of the package itself. `.ci/long floors` installs them and tries the package with them.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?(?:>=|==)([0-9][0-9.]*)")
_INCLUDED = re.compile(r"multimodal-eval\[([^]]*)\]")  # other extras of this package


def floors(extras: Sequence[str] = ()) -> dict[str, str]:
    """The lowest version of each requirement, by name."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    groups = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in extras)]
    lowest = {}
    for requirement in (requirement for group in groups for requirement in group):
        included = _INCLUDED.fullmatch(requirement)
        if included is not None:
            lowest.update(floors(included[1].split(",")))
            continue
        match = _REQUIREMENT.match(requirement)
        if match is None:
            raise ValueError(f"{requirement!r} has no lowest version")
        lowest[match[1].lower()] = match[2]
    return lowest


if __name__ == "__main__":
    for name, version in floors(sys.argv[1:]).items():
        print(f"{name}=={version}")
