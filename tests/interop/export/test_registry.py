"""The table of export formats, and what all of them have in common."""

from __future__ import annotations

import pytest

from multimodal_eval.core.errors import ConfigError, RunFolderError, UnknownNameError
from multimodal_eval.interop.export.registry import FORMATS, export, format_options
from tests.interop.export.runs import make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("registry") / "run")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_a_module_and_explained_options(name):
    assert FORMATS[name].summary.endswith(".")
    for option in format_options(name).values():
        assert option.help


def test_an_unknown_format(run):
    with pytest.raises(UnknownNameError, match=r"no export format is named 'cvs'. Did you mean 'csv'"):
        export(run, "cvs")


def test_the_place(run, tmp_path):
    with pytest.raises(ConfigError, match="csv needs a path: -o FILE"):
        export(run, "csv")
    with pytest.raises(ConfigError, match="eee needs a path: -o FOLDER"):
        export(run, "eee")
    with pytest.raises(ConfigError, match="is a folder, but the format csv writes one file"):
        export(run, "csv", tmp_path)
    file = tmp_path / "a.yaml"
    assert export(run, "model-index", file, model="a/b").paths == (file,)
    with pytest.raises(ConfigError, match=r"already exists. Replace it with --overwrite"):
        export(run, "model-index", file)
    before = file.read_text()
    export(run, "model-index", file, overwrite=True, model="a/c")
    assert file.read_text() != before
    with pytest.raises(ConfigError, match="is a file, but the format eee writes a folder"):
        export(run, "eee", file)
    with pytest.raises(ConfigError, match=r"a\.yaml cannot be written"):
        export(run, "csv", file / "b.csv")


def test_inputs(run, tmp_path):
    with pytest.raises(ConfigError, match="no run to export"):
        export([], "csv", tmp_path / "a.csv")
    with pytest.raises(RunFolderError, match="is not a run folder"):
        export(tmp_path / "nothing", "csv", tmp_path / "a.csv")
    assert export(str(run.path), "csv", tmp_path / "a.csv").paths
    with pytest.raises(ConfigError, match=r"the format csv has no option 'row'. Did you mean 'rows'"):
        export(run, "csv", tmp_path / "b.csv", row="metrics")
