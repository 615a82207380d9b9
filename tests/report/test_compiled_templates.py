import sys

import pytest
from jinja2 import Environment

from multimodal_eval.report import templating
from multimodal_eval.report.templating import templates


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "compiled"))
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "page.html.j2").write_text("<p>{{ name }}</p>")
    return tmp_path / "pages"


def page(folder, name="a & b"):
    """The page as a new process renders it."""
    templating._IN_MEMORY.clear()
    return templates(folder).get_template("page.html.j2").render(name=name)


def compiled(folder):
    return [path for path in (folder.parent / "compiled").rglob("*") if path.is_file()]


def test_a_template_is_compiled_once(folder, monkeypatch):
    assert page(folder) == "<p>a &amp; b</p>"
    (file,) = compiled(folder)
    assert file.name.startswith("page.html.")
    monkeypatch.setattr(Environment, "compile", None)  # a second compilation would fail
    assert page(folder, "<i>") == "<p>&lt;i&gt;</p>"


def test_a_process_that_may_not_write_compiles_once_too(folder, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    page(folder)
    monkeypatch.setattr(Environment, "compile", None)
    assert templates(folder).get_template("page.html.j2").render(name="x") == "<p>x</p>"
    monkeypatch.undo()
    (folder / "page.html.j2").write_text("<b>{{ name }}</b>")
    assert templates(folder).get_template("page.html.j2").render(name="x") == "<b>x</b>"


def test_a_changed_template_is_compiled_again(folder):
    page(folder)
    (folder / "page.html.j2").write_text("<b>{{ name }}</b>")
    assert page(folder) == "<b>a &amp; b</b>"
    assert len(compiled(folder)) == 1


def test_another_version_compiles_again(folder, monkeypatch):
    page(folder)
    (file,) = compiled(folder)
    before = file.read_bytes()
    monkeypatch.setattr("multimodal_eval.report.templating.__version__", "9.9")
    assert page(folder) == "<p>a &amp; b</p>"
    assert file.read_bytes() != before


@pytest.mark.parametrize("content", [b"", b"no bytecode", None])
def test_a_damaged_file_is_replaced(folder, content):
    page(folder)
    (file,) = compiled(folder)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2] if content is None else content)
    assert page(folder) == "<p>a &amp; b</p>"
    assert file.read_bytes() == whole


def test_nothing_is_written_if_python_may_not_write_bytecode(folder, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert page(folder) == "<p>a &amp; b</p>"
    assert compiled(folder) == []


def test_a_folder_that_cannot_be_written(folder):
    (folder.parent / "compiled").write_text("a file, not a folder")
    assert page(folder) == "<p>a &amp; b</p>"
