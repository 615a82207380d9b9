"""The software bill of materials of a release (CycloneDX 1.6, JSON): the package and all that its installation brings.

    python -m tools.release.sbom ENVIRONMENT [WHEEL ...] > dist/multimodal-eval.cdx.json

ENVIRONMENT is a virtual environment into which the wheel was installed (`tools.release.try_wheel --keep`): the versions
are those that were tried. The hashes are those of the wheels. The same input gives the same bytes.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import sys
import tomllib
import uuid
from collections.abc import Iterable, Sequence
from hashlib import sha256
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
NAME = "multimodal-eval"
_INSTALLER = ("pip", "setuptools", "wheel")  # of the environment, not of the package


def normalized(name: str) -> str:
    """The name of a package as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def bill(installed: Iterable[Distribution], wheels: Sequence[Path] = ()) -> dict[str, Any]:
    """The document."""
    by_name = {normalized(each.name): each for each in installed}
    for name in _INSTALLER:
        by_name.pop(name, None)
    if NAME not in by_name:
        raise SystemExit(f"{NAME} is not installed there. Install its wheel first")
    reached = _reached(by_name)
    main = _component(by_name[NAME], "application")
    main["externalReferences"] = [
        {
            "type": "distribution",
            "url": path.name,
            "hashes": [{"alg": "SHA-256", "content": sha256(path.read_bytes()).hexdigest()}],
        }
        for path in sorted(wheels)
    ]
    main["components"] = [_linked("nanobind")]
    others = [_component(by_name[name], "library") for name in sorted(reached) if name != NAME]
    graph = [
        {
            "ref": _reference(by_name[name]),
            "dependsOn": [_reference(by_name[needed]) for needed in sorted(reached[name])],
        }
        for name in sorted(reached)
    ]
    content: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": _time(), "component": main},
        "components": others,
        "dependencies": graph,
    }
    digest = sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return {**content, "serialNumber": f"urn:uuid:{uuid.UUID(digest[:32], version=4)}"}


def _reached(by_name: dict[str, Distribution]) -> dict[str, set[str]]:
    """What each package needs, for the package itself and everything below it; without extras."""
    graph: dict[str, set[str]] = {}
    waiting = [NAME]
    while waiting:
        name = waiting.pop()
        if name in graph:
            continue
        needs = (Requirement(text) for text in by_name[name].requires or ())
        names = {normalized(need.name) for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})}
        graph[name] = {each for each in names if each in by_name}
        waiting += graph[name]
    return graph


def _reference(package: Distribution) -> str:
    return f"pkg:pypi/{normalized(package.name)}@{package.version}"


def _component(package: Distribution, kind: str) -> dict[str, Any]:
    reference = _reference(package)
    component: dict[str, Any] = {
        "type": kind,
        "bom-ref": reference,
        "name": normalized(package.name),
        "version": package.version,
        "purl": reference,
    }
    described = package.metadata
    if expressions := described.get_all("License-Expression"):
        component["licenses"] = [{"expression": expressions[0]}]
    elif name := _licence_name((described.get_all("License") or [""])[0], described.get_all("Classifier") or []):
        component["licenses"] = [{"license": {"name": name}}]
    return component


def _licence_name(text: str, classifiers: Iterable[str]) -> str:
    names = [item.rpartition(" :: ")[2] for item in classifiers if item.startswith("License :: ")]
    first = text.strip().partition("\n")[0]
    return ", ".join(names) or (first if len(first) < 100 else "")


def _linked(name: str) -> dict[str, Any]:
    """A library that is compiled into the extension, with the version that pyproject.toml requires."""
    required = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    version = next(text.partition("==")[2] for text in required if text.startswith(f"{name}=="))
    reference = f"pkg:pypi/{name}@{version}"
    return {"type": "library", "bom-ref": reference, "name": name, "version": version, "purl": reference}


def _time() -> str:
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC) if seconds else datetime.datetime.now(datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def main(arguments: Sequence[str]) -> None:
    environment, *wheels = arguments
    (folder,) = Path(environment).glob("lib/python*/site-packages")
    document = bill(distributions(path=[str(folder)]), [Path(wheel) for wheel in wheels])
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
