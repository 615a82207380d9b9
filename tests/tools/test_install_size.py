"""Sizes of installations: of a small package of its own, so that nothing is downloaded."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import pytest

from tools.install_size import MB, Environment, main, table


def test_the_table_sums_up_small_packages():
    text = table({"large": 3 * MB, "pip": 2 * MB, "small": 40_000, "tiny": 10_000}, 6 * MB)
    # 6 - 3 - 2 - .05 is in no package; 6 - 2 is not pip's
    assert text.splitlines() == [
        "large                         3.0",
        "pip                           2.0",
        "2 smaller packages            0.1   small, tiny",
        "links, folders, scripts       0.9",
        "total                         6.0   4.0 without pip and setuptools",
    ]


def wheel(folder, name, content, requires=()):
    """A wheel with one file, and an extra `more` that requires something."""
    path, info = folder / f"{name}-1-py3-none-any.whl", f"{name}-1.dist-info"
    extra = "Provides-Extra: more\n" + "".join(f"Requires-Dist: {each} ; extra == 'more'\n" for each in requires)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.txt", content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n{extra}")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", f"{name}.txt,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return path


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The wheel of a package of 5 MB with an extra of 2 MB."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    wheel(tmp_path, "addition", "y" * 2 * MB)
    return wheel(tmp_path, "multimodal_eval", "x" * 5 * MB, ["addition"])


@pytest.mark.slow
def test_sizes_are_those_of_du(package, tmp_path, capfd):
    assert main(["more", "--wheel", str(package), "--keep", str(tmp_path / "venv"), "--most", "6"]) == 1
    out, error = capfd.readouterr()
    assert "multimodal-eval               5.0" in out
    assert "[more] adds 2.0 MB, 1 packages: addition 2.0" in out
    total = Environment(tmp_path / "venv", package).total()
    listed = subprocess.run(["du", "-sb", str(tmp_path / "venv")], capture_output=True, text=True, check=True).stdout
    assert total == int(listed.split()[0])
    assert f"the base installation has {total / MB:.1f} MB, more than 6" in error
    assert sys.executable != Environment(tmp_path / "venv", package).python
