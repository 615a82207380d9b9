"""The software bill of materials of a release (CycloneDX 1.6, JSON): the package and all that its installation brings.

    python -m tools.release.sbom ENVIRONMENT [WHEEL ...] > dist/multimodal-eval.cdx.json

cyclonedx-py reads ENVIRONMENT, into which the wheel was installed (`tools.release.try_wheel --keep`): the versions are
those that were tried. The package becomes the main component, with the hashes of its wheels and the library that is
compiled into it, and pip is left out. With `SOURCE_DATE_EPOCH`, the same input gives the same bytes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NAME = "multimodal-eval"
_INSTALLER = ("pip", "setuptools", "wheel")  # of the environment, not of the package


def bill(read: dict[str, Any], wheels: Sequence[Path] = ()) -> dict[str, Any]:
    """The document about the package, of the one about the environment."""
    by_name = {component["name"]: component for component in read["components"]}
    if NAME not in by_name:
        raise SystemExit(f"{NAME} is not installed there. Install its wheel first")
    package = by_name.pop(NAME)
    left_out = {by_name.pop(name)["bom-ref"] for name in _INSTALLER if name in by_name}
    package |= {"type": "application", "purl": f"pkg:pypi/{NAME}@{package['version']}", "components": [_nanobind()]}
    package["externalReferences"] = [
        {
            "type": "distribution",
            "url": path.name,
            "hashes": [{"alg": "SHA-256", "content": sha256(path.read_bytes()).hexdigest()}],
        }
        for path in sorted(wheels)
    ]
    graph = [entry for entry in read["dependencies"] if entry["ref"] not in left_out]
    metadata = {**read["metadata"], "component": package}
    return {**read, "metadata": metadata, "components": list(by_name.values()), "dependencies": graph}


def _nanobind() -> dict[str, str]:
    """The library that is compiled into the extension, with the version that pyproject.toml requires."""
    required = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    version = next(text.partition("==")[2] for text in required if text.startswith("nanobind=="))
    reference = f"pkg:pypi/nanobind@{version}"
    return {"type": "library", "bom-ref": reference, "name": "nanobind", "version": version, "purl": reference}


def main(arguments: Sequence[str]) -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    environment, *wheels = arguments
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--short-PURLs", environment]
    command += ["--output-reproducible"] if "SOURCE_DATE_EPOCH" in os.environ else []
    read = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    text = json.dumps(bill(read, [Path(wheel) for wheel in wheels]), indent=2, ensure_ascii=False)
    if fault := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        sys.exit(str(fault))
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
