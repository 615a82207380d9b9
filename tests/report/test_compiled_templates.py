import sys
from pathlib import Path

import pytest
from jinja2 import Environment

from multimodal_eval.report import compiled_templates
from multimodal_eval.report.compiled_templates import compile_all
from multimodal_eval.report.templating import templates

REPORT = Path(compiled_templates.__file__).parent


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "compiled"))
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "page.html.j2").write_text("<p>{{ name }}</p>")
    return tmp_path / "pages"


def page(folder, name="a & b"):
    """The page as a new process renders it."""
    compiled_templates._IN_MEMORY.clear()
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


def test_a_wheel_has_all_templates_compiled(folder, monkeypatch):
    shipped = folder.parent / "shipped"
    compile_all(shipped)
    monkeypatch.setattr(compiled_templates, "_SHIPPED", shipped)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    compiled_templates._IN_MEMORY.clear()
    paths = sorted(REPORT.rglob("*.j2"))
    assert len(paths) == len(list(shipped.glob("t*.py"))) > 10
    for path in paths:
        environment = templates(path.parent)
        environment.filters = compiled_templates._AnyFilter(environment.filters)
        code = environment.compile(path.read_text(encoding="utf-8"), path.name, path.name, raw=True)
        assert code in {file.read_text(encoding="utf-8") for file in shipped.glob("t*.py")}
        with monkeypatch.context() as patch:
            patch.setattr(Environment, "compile", None)  # a compilation would fail
            environment.get_template(path.name)
    compiled_templates._IN_MEMORY.clear()
