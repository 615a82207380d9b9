"""A metric needs four files: code, card, examples and test. The tests add one to a copy of the project."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import multimodal_eval

ROOT = Path(__file__).parents[2]
NAME = "word_overlap"
NEEDED = (
    "__init__.py",
    "conftest.py",
    "registry_state.py",
    "resource_folders.py",
    "slow_list.py",
    "slow_tests.txt",
    "contract",
    "docs",
    "golden",
)  # of tests/

CODE = '''"""Word overlap: what share of the answer's words is in a reference?"""

from __future__ import annotations

from typing import Annotated, Literal

from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample


@metric("word_overlap", version="1", needs=("generated_answer", "references"), bounds=(0, 1), placement="thread")
def compute_word_overlap(
    sample: Sample, *, case: Annotated[Literal["fold", "keep"], "whether case is ignored"] = "fold"
) -> float:
    """The share of the answer's words that are in a reference."""
    normalised = str.lower if case == "fold" else str
    words = normalised(sample.generated_answer or "").split()
    known = {word for text in sample.reference_texts for word in normalised(text).split()}
    return sum(word in known for word in words) / len(words) if words else 0.0
'''
TEST = """from multimodal_eval import Sample
from multimodal_eval.core.metric import configured
from multimodal_eval.evaluation.word_overlap import compute_word_overlap


def test_word_overlap_by_hand():
    sample = Sample(id="1", generated_answer="A red dog", references=["a dog"])
    assert compute_word_overlap(sample) == 2 / 3
    assert configured(compute_word_overlap, {"case": "keep"})(sample) == 1 / 3
"""
DATA = '{"id": "1", "generated_answer": "a red dog", "references": ["a dog"]}\n'

# An editable install hooks the import system; the copy must win over it.
PRELUDE = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
sys.path.insert(0, sys.argv.pop(1))
import multimodal_eval
assert multimodal_eval.__file__.startswith(sys.path[0]), multimodal_eval.__file__
"""
MMEVAL = PRELUDE + "from multimodal_eval.cli.main import main; main()"
PYTEST = PRELUDE + "import pytest; sys.exit(pytest.main(sys.argv[1:]))"
LINT_IMPORTS = PRELUDE + "from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"


class Copy:
    """A copy of the project, and the commands that run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.code = folder / "src" / "multimodal_eval" / "evaluation" / "metrics" / f"{NAME}.py"
        self.card = folder / "docs" / "metrics" / f"{NAME}.md"
        self.examples = folder / "tests" / "contract" / "examples.py"
        self.test = folder / "tests" / "evaluation" / f"test_{NAME}.py"

    def python(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        source = str(self.folder / "src")
        command = [sys.executable, "-c", program, source, *arguments]
        environment = {**os.environ, "PYTHONPATH": source, "COLUMNS": "100"}
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)

    def mmeval(self, *arguments: str) -> str:
        done = self.python(MMEVAL, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def pytest(self) -> subprocess.CompletedProcess[str]:
        """Run the tests of the new metric, the test for missing examples and those of all cards."""
        selection = f"{NAME} or every_metric_has_examples or test_cards"
        options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-k", selection]
        tests = ["tests/contract/test_every_metric.py", "tests/contract/test_threads.py", "tests/docs/test_cards.py"]
        return self.python(PYTEST, *options, *tests, *(["tests/evaluation"] if self.test.exists() else []))


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The project with the four changes."""
    project = Copy(tmp_path_factory.mktemp("copy"))
    ignored = shutil.ignore_patterns("__pycache__")
    package = project.folder / "src" / "multimodal_eval"
    shutil.copytree(Path(multimodal_eval.__file__).parent, package, ignore=ignored)
    native = importlib.util.find_spec("multimodal_eval._native")
    assert native is not None
    assert native.origin is not None
    shutil.copy(native.origin, package)
    shutil.copytree(ROOT / "docs" / "metrics", project.card.parent)
    for name in NEEDED:
        source, target = ROOT / "tests" / name, project.folder / "tests" / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=ignored)
        else:
            target.parent.mkdir(exist_ok=True)
            shutil.copy(source, target)
    for name in ("pyproject.toml", "docs/metrics.md"):
        shutil.copy(ROOT / name, project.folder / name)

    project.code.write_text(CODE, encoding="utf-8")
    card = (ROOT / "docs" / "metrics" / "rouge_l.md").read_text(encoding="utf-8")
    project.card.write_text(re.sub(r"`rouge_l\|.*`", f"`{NAME}|v:1|case:fold`", card), encoding="utf-8")
    with project.examples.open("a", encoding="utf-8") as file:
        file.write(f'EXAMPLES["{NAME}"] = CAPTIONS\n')
    project.test.parent.mkdir()
    project.test.write_text(TEST, encoding="utf-8")
    return project


def test_the_commands_know_it(copy):
    (copy.folder / "data.jsonl").write_text(DATA)
    assert NAME in copy.mmeval("ls", "metrics")
    scored = copy.mmeval("score", "data.jsonl", "--metrics", NAME, "--option", f"{NAME}.case=keep", "-o", "run")
    assert re.search(rf"{NAME}.*0\.6667", scored)
    card = copy.mmeval("card", NAME)
    assert "Metric Card for" in card
    assert re.search(r"case +fold +one of fold, keep +whether case is ignored", card)


def test_the_contract_tests_cover_it(copy):
    done = copy.pytest()
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 10  # type: ignore[index]
    assert "skipped" not in done.stdout


def test_without_a_card_or_an_example_they_fail(copy):
    card, examples = copy.card.read_text(encoding="utf-8"), copy.examples.read_text(encoding="utf-8")
    copy.card.unlink()
    copy.examples.write_text(examples.replace(f'EXAMPLES["{NAME}"] = CAPTIONS\n', ""), encoding="utf-8")
    try:
        output = copy.pytest().stdout
    finally:
        copy.card.write_text(card, encoding="utf-8")
        copy.examples.write_text(examples, encoding="utf-8")
    assert "FAILED tests/contract/test_every_metric.py::test_every_metric_has_examples" in output
    assert "FAILED tests/docs/test_cards.py::test_there_are_no_other_cards" in output


def test_the_table_of_metrics_is_rewritten(copy):
    script = PRELUDE + "import runpy; runpy.run_path('tests/docs/update_pages.py', run_name='__main__')"
    assert copy.python(script, "metrics").returncode == 0
    row = f"| [`{NAME}`](metrics/{NAME}.md) | 0 to 1 | The share of the answer's words that are in a reference. |"
    assert row in (copy.folder / "docs" / "metrics.md").read_text(encoding="utf-8")


def test_it_may_not_import_another_metric(copy):
    assert copy.python(LINT_IMPORTS).returncode == 0
    copy.code.write_text(CODE + "from multimodal_eval.evaluation.metrics.cider import cider\n", encoding="utf-8")
    done = copy.python(LINT_IMPORTS)
    copy.code.write_text(CODE, encoding="utf-8")
    assert done.returncode == 1
    assert "A metric never imports another metric BROKEN" in done.stdout
