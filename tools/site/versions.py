"""The versions of a site, side by side: OUT/0.9.0/, OUT/dev/, and OUT/versions.js with their names and pages."""

from __future__ import annotations

import json
import re
from pathlib import Path

RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)")
REDIRECT = """<!doctype html>
<meta charset="utf-8">
<title>multimodal-eval</title>
<meta http-equiv="refresh" content="0; url={name}/index.html">
<p><a href="{name}/index.html">The documentation of {name}</a></p>
"""


def is_release(name: str) -> bool:
    """Whether a version is a release, such as 1.2.3."""
    return RELEASE.fullmatch(name) is not None


def versions(out: Path) -> list[str]:
    """The versions in a folder: releases, the newest first, then the others by name."""
    names = [path.parent.name for path in out.glob("*/index.html")]

    def key(name: str) -> tuple[bool, list[int], str]:
        release = RELEASE.fullmatch(name)
        return (release is None, [-int(number) for number in release.groups()] if release else [], name)

    return sorted(names, key=key)


def write_versions(out: Path) -> list[str]:
    """Write versions.js, which works from a disk too, versions.json, and a first page that leads to the newest."""
    names = versions(out)
    records = [
        {
            "name": name,
            "released": is_release(name),
            "pages": sorted(str(path.relative_to(out / name)) for path in (out / name).rglob("*.html")),
        }
        for name in names
    ]
    (out / "versions.json").write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    (out / "versions.js").write_text(f"window.siteVersions = {json.dumps(records)};\n", encoding="utf-8")
    (out / "index.html").write_text(REDIRECT.format(name=names[0]), encoding="utf-8")
    return names
