"""Facts about a source tree that is small enough to count by hand."""

from __future__ import annotations

import pytest

from tools.layers import draw, importers, layers, read_modules

FILES = {
    "__init__.py": "from multimodal_eval.core.sample import Sample\n",
    "core/__init__.py": "",
    "core/sample.py": "class Sample:\n    def words(self):\n        return 0\n",
    "run/__init__.py": "",
    "run/plan.py": "from multimodal_eval.core import sample\n\ndef plan(options: dict[str, Any]):\n    return sample\n",
    "cli/__init__.py": "",
    "cli/main.py": "def main():\n    from multimodal_eval.run.plan import plan\n\n    return plan\n",
}


@pytest.fixture
def modules(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read_modules(tmp_path)


def test_files_functions_and_untyped_dictionaries_are_counted(modules):
    assert [module.name for module in modules] == [
        "__init__",
        "cli",
        "cli.main",
        "core",
        "core.sample",
        "run",
        "run.plan",
    ]
    assert {
        module.name: (module.lines, module.functions, module.untyped) for module in modules if module.functions
    } == {
        "cli.main": (4, (4,), 0),
        "core.sample": (3, (2,), 0),
        "run.plan": (4, (2,), 1),
    }


def test_imports_inside_functions_and_of_modules_are_counted(modules):
    assert importers(modules) == {"core.sample": ["__init__", "run.plan"], "run.plan": ["cli.main"]}


def test_the_diagram_has_every_subpackage_and_the_counts(modules):
    diagram = draw(modules)
    for layer in layers():
        for subpackage in layer:
            assert diagram.count(f">{subpackage}<") == 2  # its row and its column
    assert diagram.count('text-anchor="middle">1<') == 2  # cli -> run, run -> core
