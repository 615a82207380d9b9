"""The files that pin versions agree, and no file names a package registry."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tools.floors import floors

ROOT = Path(__file__).parents[2]
CI = ROOT / ".ci" / "requirements.txt"


def pins(path: Path) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", path.read_text(encoding="utf-8"), re.MULTILINE))


def version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))


def test_the_hashed_requirements_are_the_constraints_and_the_build_requirements():
    assert pins(CI) == pins(ROOT / "constraints.txt") | pins(ROOT / ".ci" / "build.in")


def test_every_hashed_requirement_has_a_hash_and_no_address():
    text = CI.read_text(encoding="utf-8")
    for block in re.split(r"\n(?=\S)", text.strip()):
        assert re.fullmatch(r"[a-z0-9._-]+==\S+( \\\n    --hash=sha256:[0-9a-f]{64})+", block), block[:100]


def test_the_build_requirements_are_the_same_everywhere():
    for project in (ROOT, ROOT / "examples" / "plugin"):
        required = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
        versions = dict(requirement.replace("_", "-").split("==") for requirement in required)
        assert versions.items() <= pins(ROOT / ".ci" / "build.in").items()


def test_no_constraint_is_lower_than_a_floor():
    pinned = pins(ROOT / "constraints.txt")
    lowest = floors(["models", "view", "remote", "ray"])
    assert len(lowest) > 15
    for name, floor in lowest.items():
        assert version(pinned[name]) >= version(floor), name


def test_the_base_installation_has_few_packages():
    # Each one adds to what everybody installs: docs/install.md says what it is for.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [re.split(r"[<>=\[]", requirement)[0] for requirement in project["dependencies"]]
    assert names == "aiohttp click jinja2 markupsafe msgspec numpy pillow pyarrow pyyaml rich".split()
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    for name in (*names, *project["optional-dependencies"]):
        assert f"`{name}`" in page or f"`[{name}]`" in page, name


def test_the_floors_of_an_extra_include_those_of_the_extras_in_it():
    assert floors(["models"]).items() <= floors(["torch"]).items()
    assert "onnxruntime" in floors(["trainer"])
    assert "onnxruntime" not in floors()
