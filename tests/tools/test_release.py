"""What a release consists of: notes, source archive, wheels, bill of materials, workflows, citation."""

from __future__ import annotations

import email
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from datetime import date
from pathlib import Path

import pytest
import yaml

from multimodal_eval import __version__
from tools.release import contents, sbom, smoke
from tools.release.compiler import environment
from tools.release.interpreters import interpreters, lowest, version_of
from tools.release.try_wheel import BUILD_TOOLS, bare_path, fitting
from tools.release.version import package_version, problem
from tools.release_notes import CHANGELOG, NoNotesError, fragments, main, release_notes

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

LOG = """# Changelog

## 1.1.0 (unreleased)

- Not yet.

## 1.0.0 (2026-01-02)

- First entry, which
  continues here.
- Second entry:
  - a part of it

## 0.9.0 (2025-01-01)
"""


class TestNotes:
    def test_a_section_ends_at_the_next_title_and_entries_are_single_lines(self):
        assert (
            release_notes(LOG, "v1.0.0") == "- First entry, which continues here.\n- Second entry:\n  - a part of it\n"
        )

    @pytest.mark.parametrize(
        ("version", "message"),
        [
            ("2.0.0", "no section for '2.0.0'. It has: 1.1.0, 1.0.0, 0.9.0"),
            ("1.1.0", "no date. Got 'unreleased'"),
            ("0.9.0", "is empty"),
        ],
    )
    def test_no_notes(self, version, message):
        with pytest.raises(NoNotesError, match=re.escape(message)):
            release_notes(LOG, version)

    def test_a_draft_needs_no_date(self):
        assert release_notes(LOG, "1.1.0", draft=True) == "- Not yet.\n"

    def test_files_of_changes_become_entries_of_their_kind(self, tmp_path, monkeypatch):
        log = LOG.replace("- Not yet.", "An introduction.\n\n### Added\n\n- Not yet.\n\n### Removed\n\n- Old.")
        (tmp_path / "CHANGELOG.md").write_text(log)
        monkeypatch.setattr("tools.release_notes.CHANGELOG", tmp_path / "CHANGELOG.md")
        monkeypatch.setattr("tools.release_notes.CHANGES", tmp_path / "changes")
        (tmp_path / "changes").mkdir()
        for name, text in (("a.added", "First,\nwrapped.\n"), ("b.added", "Second."), ("c.fixed", "x" * 160)):
            (tmp_path / "changes" / f"{name}.md").write_text(text)
        assert main(["1.1.0", "--join", "--draft"]) == 0
        assert (tmp_path / "CHANGELOG.md").read_text() == log.replace(
            "- Not yet.\n", f"- Not yet.\n- First, wrapped.\n- Second.\n\n### Fixed\n\n- {'x' * 160}\n"
        )
        assert list((tmp_path / "changes").iterdir()) == []
        (tmp_path / "changes" / "new.fixed.md").write_text("Later.")
        assert main(["1.2.0", "--join", "--draft"]) == 0
        text = (tmp_path / "CHANGELOG.md").read_text()
        assert text.startswith("# Changelog\n\n## 1.2.0 (unreleased)\n\n### Fixed\n\n- Later.\n\n## 1.1.0 (unreleased)")
        (tmp_path / "changes" / "wrong.md").write_text("What?")
        assert main(["1.2.0", "--join", "--draft"]) == 1

    def test_the_files_of_changes_have_a_kind_and_a_text(self):
        for path in fragments():
            assert len(path.read_text(encoding="utf-8").split()) > 3, path

    def test_the_changelog_has_notes_for_this_version_and_dates_for_the_others(self, capsys):
        current = __version__.removesuffix(".dev0")
        versions = re.findall(r"^## (\S+) \(", CHANGELOG.read_text(encoding="utf-8"), re.MULTILINE)
        assert versions[0] == current
        for version in versions[1:]:
            assert main([version]) == 0
        assert main([current, "--draft"]) == 0
        lines = CHANGELOG.read_text(encoding="utf-8").split("\n## ")[1].splitlines()
        assert len(lines) <= 120, "say what a user notices, in at most 120 lines"
        assert main(["99.0.0"]) == 1
        assert "99.0.0" in capsys.readouterr().err


def test_the_tag_must_be_the_version():
    assert problem("v0.2.0", "0.2.0") == ""
    assert problem("v0.2.0rc1", "0.2.0rc1") == ""
    assert "the version is 0.2.1" in problem("v0.2.0", "0.2.1")
    assert "not one to release" in problem("v0.2.0.dev0", "0.2.0.dev0")
    assert package_version() == __version__


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The source archive, built by the backend itself."""
    backend = pytest.importorskip("scikit_build_core.build", reason="the build requirements are not installed")
    folder = tmp_path_factory.mktemp("sdist")
    code = f"from scikit_build_core.build import build_sdist; build_sdist({str(folder)!r})"
    assert backend
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.iterdir()
    return path


class TestSourceArchive:
    def test_it_has_what_the_wheel_is_built_from_and_nothing_else(self, archive):
        assert contents.problems(archive) == []

    def test_every_tracked_source_is_in_it(self, archive):
        listed = subprocess.run(
            ["git", "ls-files", "src", "native", "docs/metrics"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if listed.returncode:
            pytest.skip("not a git checkout")
        with tarfile.open(archive) as tar:
            names = {name.partition("/")[2] for name in tar.getnames()}
        tracked = {name for name in listed.stdout.splitlines() if not name.startswith("native/fuzz/")}
        assert tracked - names == set()

    def test_the_description_is_that_of_the_project(self, archive):
        with tarfile.open(archive) as tar:
            (name,) = [name for name in tar.getnames() if name.endswith("PKG-INFO")]
            info = email.message_from_bytes(tar.extractfile(name).read())
        assert info["Name"] == "multimodal-eval"
        assert info["Version"] == __version__
        assert info["License-Expression"] == "Apache-2.0"
        assert info.get_all("License-File") == ["LICENSE", "NOTICE"]
        assert info["Description-Content-Type"] == "text/markdown"
        assert "mmeval score captions.jsonl" in info.get_payload()


def tar_with(path: Path, *names: str) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            tar.addfile(tarfile.TarInfo(f"multimodal_eval-1/{name}"), io.BytesIO())
    return path


def wheel_with(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as wheel:
        for name in names:
            wheel.writestr(name, "")
    return path


class TestContents:
    WHEEL = (
        *(f"multimodal_eval-1.dist-info/{name}" for name in ("METADATA", "RECORD", "entry_points.txt")),
        *(f"multimodal_eval-1.dist-info/licenses/{name}" for name in ("LICENSE", "NOTICE")),
        *(f"multimodal_eval/{name}" for name in ("py.typed", "cards/cider.md", "_native.abi3.so")),
        "multimodal_eval/models/shapes-clip/model.safetensors",
        "multimodal_eval/report/compiled/t0123.py",
    )

    def test_missing_and_needless_files_of_an_archive(self, tmp_path):
        path = tar_with(
            tmp_path / "a.tar.gz", "README.md", "native/a.cpp", "tests/test_a.py", "native/__pycache__/a.pyc"
        )
        faults = contents.problems(path)
        assert "tests/test_a.py is not needed" in faults
        assert "LICENSE is missing" in faults
        assert "src/multimodal_eval is missing" in faults
        assert "native/__pycache__/a.pyc does not belong there" in faults
        assert not any("README.md" in text for text in faults)

    def test_a_whole_wheel(self, tmp_path):
        assert contents.problems(wheel_with(tmp_path / "a.whl", *self.WHEEL)) == []

    def test_missing_and_needless_files_of_a_wheel(self, tmp_path):
        names = [name for name in self.WHEEL if not any(part in name for part in ("NOTICE", "_native", "compiled"))]
        faults = contents.problems(wheel_with(tmp_path / "a.whl", *names, "tests/__init__.py", "bench/a.py"))
        assert "multimodal_eval-1.dist-info/licenses/NOTICE is missing" in faults
        assert "multimodal_eval/report/compiled is missing" in faults
        assert "tests is not needed" in faults
        assert "bench is not needed" in faults
        assert "one compiled extension is expected. Got [] instead" in faults

    def test_a_large_wheel_is_named(self, tmp_path):
        path = wheel_with(tmp_path / "a.whl", *self.WHEEL)
        with zipfile.ZipFile(path, "a") as wheel:
            wheel.writestr("multimodal_eval/large.bin", bytes(12_600_000))
        assert contents.problems(path) == ["it has 12.6 MB, more than 12"]

    def test_the_extension_of_each_system_is_known(self, tmp_path):
        for name in ("_native.cpython-311-x86_64-linux-gnu.so", "_native.cp312-win_amd64.pyd", "_native.pyd"):
            names = [each for each in self.WHEEL if "_native" not in each]
            assert contents.problems(wheel_with(tmp_path / "a.whl", *names, f"multimodal_eval/{name}")) == []


class TestWheels:
    def test_the_fitting_wheel(self):
        stem = "multimodal_eval-0.2.0"
        single, stable = (Path(f"{stem}-{tags}-manylinux_2_28_x86_64.whl") for tags in ("cp311-cp311", "cp312-abi3"))
        assert fitting([single, stable], (3, 11)) == single
        assert fitting([single, stable], (3, 12)) == stable
        assert fitting([single, stable], (3, 14)) == stable
        with pytest.raises(SystemExit, match=r"no wheel fits Python 3\.11"):
            fitting([stable], (3, 11))

    @pytest.mark.skipif(sys.platform == "win32", reason="the trial is for POSIX systems")
    def test_the_path_of_a_trial_has_no_build_tool(self, monkeypatch):
        monkeypatch.setenv("CXX", "g++")
        with bare_path() as variables:
            assert "CXX" not in variables
            shell = f"for each in {' '.join(BUILD_TOOLS)}; do command -v $each && exit 1; done; ls > /dev/null"
            assert subprocess.run(["/bin/sh", "-c", shell], env=variables, check=False).returncode == 0

    def test_interpreters_are_supported_versions(self):
        assert lowest() == (3, 11)
        assert version_of(sys.executable) == sys.version_info[:2]
        assert version_of("/no/such/python") is None
        assert all(version >= (3, 11) for version in interpreters())

    @pytest.mark.skipif(sys.platform == "win32", reason="the compiler scripts are for POSIX systems")
    def test_the_compiler_names_the_old_glibc(self, tmp_path):
        variables = environment(tmp_path, "aarch64")
        assert Path(variables["CXX"]).read_text(encoding="utf-8").count("aarch64-linux-gnu.2.28") == 1

    def test_one_wheel_serves_all_versions_from_the_stable_abi_on(self):
        assert PROJECT["tool"]["scikit-build"]["wheel"]["py-api"] == "cp312"
        assert PROJECT["tool"]["cibuildwheel"]["build"][0] == "cp311-*"
        assert "tools/release/smoke.py" in PROJECT["tool"]["cibuildwheel"]["test-command"]


def test_the_trial_expects_the_scores_of_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for text in smoke.SCORES:
        assert text in readme
    for sample in smoke.SAMPLES:
        assert json.dumps(sample) in readme


class TestBill:
    def test_the_package_is_the_main_component_and_pip_is_left_out(self, tmp_path):
        wheel = tmp_path / "multimodal_eval-1-cp312-abi3-any.whl"
        wheel.write_bytes(b"wheel")
        names = ("multimodal-eval", "numpy", "pip")
        read = {
            "metadata": {"timestamp": "2026-01-01T00:00:00Z"},
            "components": [
                {"type": "library", "name": name, "version": "1", "bom-ref": f"{name}==1"} for name in names
            ],
            "dependencies": [
                {"ref": "multimodal-eval==1", "dependsOn": ["numpy==1"]},
                {"ref": "numpy==1"},
                {"ref": "pip==1"},
            ],
        }
        document = sbom.bill(read, [wheel])
        main = document["metadata"]["component"]
        assert (main["type"], main["purl"]) == ("application", "pkg:pypi/multimodal-eval@1")
        assert main["externalReferences"][0]["hashes"][0]["content"] == hashlib.sha256(b"wheel").hexdigest()
        assert main["components"][0]["name"] == "nanobind"
        assert [component["name"] for component in document["components"]] == ["numpy"]
        assert [entry["ref"] for entry in document["dependencies"]] == ["multimodal-eval==1", "numpy==1"]

    def test_without_the_package_there_is_no_bill(self):
        with pytest.raises(SystemExit, match="is not installed there"):
            sbom.bill({"components": []})


class TestWorkflows:
    @pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
    def test_rights_are_given_per_job_and_every_job_has_a_limit(self, path):
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert workflow["permissions"] == {}
        for job in workflow["jobs"].values():
            assert "timeout-minutes" in job
            assert "permissions" in job

    def test_only_the_publishing_jobs_may_write(self):
        writers = {
            (path.stem, name, right)
            for path in WORKFLOWS
            for name, job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].items()
            for right, value in job["permissions"].items()
            if value == "write"
        }
        assert writers == {
            ("docs", "publish", "id-token"),
            ("docs", "publish", "pages"),
            ("release", "collect", "attestations"),
            ("release", "collect", "id-token"),
            ("release", "notes", "contents"),
            ("release", "package-index", "id-token"),
        }

    def test_ci_runs_the_script_that_everyone_runs(self):
        workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
        assert {"run": "bash .ci/run"} in workflow["jobs"]["all"]["steps"]
        systems = {
            row["system"].partition("-")[0] for row in workflow["jobs"]["tests"]["strategy"]["matrix"]["include"]
        }
        assert systems == {"ubuntu", "macos", "windows"}

    @pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
    def test_scripts_and_modules_exist(self, path):
        text = path.read_text(encoding="utf-8")
        for script in re.findall(r"bash (\.ci/\w+)", text):
            assert (ROOT / script).is_file(), script
        for module in re.findall(r"-m (tools\.[\w.]+)", text):
            base = ROOT / module.replace(".", "/")
            assert base.with_suffix(".py").is_file() or base.is_dir() or module == "tools.site", module

    @pytest.mark.parametrize(
        ("schema", "pattern"),
        [
            ("github-workflows", ".github/workflows/*.yml"),
            ("dependabot", ".github/dependabot.yml"),
            ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
            ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
            ("citation-file-format", "CITATION.cff"),
        ],
    )
    def test_files_follow_their_schemas(self, schema, pattern):
        pytest.importorskip("check_jsonschema")
        files = [str(path) for path in sorted(ROOT.glob(pattern))]
        assert files
        command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *files]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_citation_names_the_last_release():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    released = re.search(r"^## (\S+) \((\d{4}-\d{2}-\d{2})\)$", CHANGELOG.read_text(encoding="utf-8"), re.MULTILINE)
    assert (citation["version"], citation["date-released"]) == (released[1], date.fromisoformat(released[2]))
    assert citation["license"] == PROJECT["project"]["license"]


def test_the_classifiers_name_what_cibuildwheel_builds():
    classifiers = PROJECT["project"]["classifiers"]
    assert classifiers == sorted(classifiers)
    versions = {text.rpartition(" ")[2] for text in classifiers if re.search(r"Python :: 3\.\d+$", text)}
    built = {f"3.{text[3:5]}" for text in PROJECT["tool"]["cibuildwheel"]["build"]}
    assert versions == built
