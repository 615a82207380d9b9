"""Validate a bill of materials against CycloneDX's schema: python -m tools.release.sbom_check FILE"""

from __future__ import annotations

import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

if __name__ == "__main__":
    path = Path(sys.argv[1])
    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(path.read_text(encoding="utf-8"))
    if fault is not None:
        sys.exit(f"{path}: {fault}")
    print(f"{path.name}: valid CycloneDX 1.6")
