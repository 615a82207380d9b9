"""The example package: built from its source archive, installed without network, used and tested as by its owner."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from multimodal_eval import load_run
from tests.contract.test_plugin_package import SCORE

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"
BUILD = "import sys; from flit_core import buildapi; buildapi.build_sdist(sys.argv[1])"
INSTALL = ["-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation", "--no-compile"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder in which the package is installed."""
    for module in ("flit_core", "pip"):
        pytest.importorskip(module, reason="the build requirements are not installed")
    folder = tmp_path_factory.mktemp("plugin")
    subprocess.run([sys.executable, "-c", BUILD, str(folder)], cwd=EXAMPLE, check=True)
    (archive,) = folder.glob("*.tar.gz")
    target = folder / "target"
    subprocess.run([sys.executable, *INSTALL, "--target", str(target), str(archive)], cwd=folder, check=True)
    return target


def python(installed, folder, *arguments):
    """What a Python that has the package prints."""
    environment = {**os.environ, "PYTHONPATH": str(installed), "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_commands_of_its_readme(installed, tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "copy")
    rows = [{"id": "1", "generated_answer": "a Grey dog", "references": ["a gray dog", "a red and gray dog"]}]
    (tmp_path / "copy" / "answers.jsonl").write_text(json.dumps(rows[0]) + "\n", encoding="utf-8")
    commands = re.findall(r"^\$ mmeval (.*)$", (EXAMPLE / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    for command in commands:
        python(installed, tmp_path / "copy", "-c", SCORE, *shlex.split(command))
    asked, scored = (load_run(tmp_path / "copy" / "runs" / name) for name in ("tiles", "answers"))
    # The tiles are plain: the mean of the red one is (230, 20, 20), which is nearest to (255, 0, 0).
    said = [sample.generated_answer for sample in asked.samples()]
    assert said == [f"The tile is {name}." for name in ("red", "gray", "blue")]
    assert asked.outcome.metrics["exact_match"].value == 1.0
    assert "|rule:colours@1+" in asked.outcome.metrics["exact_match"].signature
    assert scored.outcome.metrics["colour_recall"].value == 0.5  # gray, of gray and red


def test_its_own_tests_pass(installed, tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    tests = str(EXAMPLE / "tests")
    options = ["-q", "-p", "no:cacheprovider", "-c", "pytest.ini", "--rootdir", str(tmp_path)]
    assert "4 passed" in python(installed, tmp_path, "-B", "-m", "pytest", *options, tests)
