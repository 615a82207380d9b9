"""Pages are executed in a folder of their own, and their outputs compared and written."""

from __future__ import annotations

import os
import sys
from io import StringIO
from pathlib import Path

import pytest

from multimodal_eval.core.progress import ProgressLine
from tools.site.execute import execute
from tools.site.setups import names, prepare
from tools.site.shell import stripped
from tools.site.workspace import workspace

CONSOLE = "```console\n$ cat a.txt\n{}```\n"
NEED_OTHERS = ("command", "files", "runs", "stopped-run")
FILE = "The file `a.txt`:\n\n```text\none\ntwo\n```\n\n"


def test_a_current_page():
    outcome = execute(FILE + CONSOLE.format("one\ntwo\n"), "page")
    assert outcome.is_good
    assert (outcome.executed, outcome.files, outcome.not_run) == (1, 1, [])


def test_a_stale_output_is_reported_and_written():
    outcome = execute(FILE + CONSOLE.format("one\nthree\n"), "page")
    assert outcome.stale == ["page:9: the output is stale. On the page:\n  three\nnow:\n  two"]
    assert outcome.text == FILE + CONSOLE.format("one\ntwo\n")
    assert execute(outcome.text, "page").is_good


def test_a_missing_output_is_written_into_a_list_with_its_indent():
    page = "1. first\n\n   ```console\n   $ echo a; echo; echo b\n   ```\n"
    assert execute(page, "page").text == "1. first\n\n   ```console\n   $ echo a; echo; echo b\n   a\n\n   b\n   ```\n"


def test_a_block_that_is_neither_executed_nor_marked():
    page = "# T\n\n```\nwhat\n```\n\n    indented\n\n```cobol\nADD\n```\n"
    faults = execute(page, "page").problems
    assert [fault.partition(": ")[0] for fault in faults] == ["page:4", "page:7", "page:10"]
    assert "is neither executed nor marked. Give it a language, or write `<!-- not run: REASON -->`" in faults[0]
    assert "the language `cobol`" in faults[2]


def test_marks_need_a_reason():
    good = execute("<!-- not run: needs a key -->\n```python\n1 / 0\n```\n", "page")
    assert (good.is_good, good.executed, good.not_run) == (True, 0, [(3, "needs a key")])
    assert execute("<!-- not run: -->\n```python\n1 / 0\n```\n", "page").problems == ["page:3: `not run` has no reason"]


def test_a_failure_is_reported_with_its_line():
    outcome = execute("```python\n1 / 0\n```\n\n    mmeval score nothing.jsonl\n", "page")
    assert outcome.executed == 0
    zero, missing = outcome.problems
    assert zero.startswith("page:2: ")
    assert "ZeroDivisionError" in zero
    assert "page:5: `mmeval score nothing.jsonl` has exit status 1, not 0:\nerror: nothing.jsonl: NOT_FOUND" in missing


def test_an_expected_failure():
    page = (
        "<!-- exit: 1 -->\n    mmeval score nothing.jsonl\n\n```\nerror: nothing.jsonl: NOT_FOUND: no such file\n```\n"
    )
    assert execute(page, "page").is_good
    assert execute(page.replace("exit: 1", "exit: 2"), "page").problems


def test_output_that_varies_is_not_compared():
    page = "<!-- output: varies -->\n```console\n$ echo now\nthen\n```\n"
    outcome = execute(page, "page")
    assert outcome.is_good
    assert outcome.text == page


def test_python_blocks_share_a_namespace_and_show_the_last_value():
    page = "```python\nx = 1\nprint('a')\nx + 1\n```\n\n```text\na\n2\n```\n\n```python\nx\n```\n\n```text\n1\n```\n"
    assert execute(page, "page").is_good
    stale = execute(page.replace("text\n1\n", "text\n7\n"), "page").stale
    assert stale == ["page:17: the output is stale. On the page:\n  7\nnow:\n  1"]


@pytest.mark.parametrize(
    ("code", "is_right"),
    [
        ("1 / 3  # 0.33", True),
        ("1 / 3  # 0.34", False),
        ("1 / 3  # 0.3333, a third", True),
        ("2 + 2  # 5", False),
        ("[1, 2]  # [1, 2]", True),
        ("[1, 2]  # [1, 3]", False),
        ("{'a': 1}  # a dictionary", True),
        ("True  # 0: not a number", True),
    ],
)
def test_stated_values(code, is_right):
    assert execute(f"```python\n{code}\n```\n", "page").is_good == is_right


def test_a_session():
    error = "Traceback (most recent call last):\n    ...\nZeroDivisionError: division by zero\n"
    page = f"```pycon\n>>> x = [1,\n...      2]\n>>> x\n[1, ...]\n>>> 1 / 0\n{error}\n```\n"
    assert execute(page, "page").is_good
    outcome = execute(page.replace("[1, ...]", "[3, ...]"), "page")
    assert len(outcome.stale) == 1
    assert ">>> x\n[1, 2]\n" in outcome.text


def test_invalid_data_on_a_page():
    page = '```json\n{"a": 1,}\n```\n\n```yaml\na: b?, {c\n```\n\n```json\n{"a": …}\n```\n'
    first, *others = execute(page, "page").problems
    assert first.startswith("page:2: the block is not valid json")
    assert others == []


def test_each_page_has_an_empty_folder_and_no_models(monkeypatch):
    monkeypatch.setenv("MMEVAL_HOME", "/somewhere")
    before, path = Path.cwd(), list(sys.path)
    code = "import os, pathlib\n\nos.environ['MMEVAL_HOME'] != '/somewhere', list(pathlib.Path().iterdir())\n"
    page = f"```python\n{code}```\n\n```text\n(True, [])\n```\n"
    assert execute(page, "page").is_good
    assert (Path.cwd(), sys.path) == (before, path)
    assert os.environ["MMEVAL_HOME"] == "/somewhere"


def test_modules_of_a_page_are_forgotten():
    page = "`part.py`:\n\n```python\nVALUE = {}\n```\n\n```python\nimport part\n\npart.VALUE\n```\n\n```text\n{}\n```\n"
    assert execute(page.format(1, 1), "first").is_good
    assert execute(page.format(2, 2), "second").is_good


def test_the_folder_is_shown_under_another_name():
    assert execute("```console\n$ pwd\n/data\n```\n", "page").is_good


def test_an_unknown_setup():
    with pytest.raises(ValueError, match=r"no setup is named 'nothing'\. Known: benchmark-copy, clarity-files, "):
        execute("<!-- setup: nothing -->\n", "page")


@pytest.mark.parametrize("name", [name for name in names() if name not in NEED_OTHERS])
def test_every_setup_prepares_something(name):
    with workspace() as work:
        prepare([name], work)
        assert any(work.folder.iterdir()) or work.aliases


def test_setups_with_words():
    with workspace() as work:
        prepare(["files captions:a.jsonl choices:b.csv", "runs captions:first"], work)
        assert sorted(path.name for path in work.folder.iterdir()) == ["a.jsonl", "b.csv", "runs"]
        assert (work.folder / "runs" / "first" / "results.json").exists()


def test_the_model_server_answers_from_a_file():
    page = """<!-- setup: model-server -->
`q.jsonl`:

```json
{"id": 1, "question": "Which colour?", "references": ["green"]}
```

`replies.json`:

```json
{"Which colour": "green"}
```

    mmeval run q.jsonl --model openai:any --base-url $MODEL_URL --metrics exact_match -o runs/a

```python
from multimodal_eval import load_run

load_run("runs/a")["exact_match"]["value"]  # 1
```
"""
    assert execute(page, "page").problems == []


def test_a_command_that_runs_before_the_page():
    setups = "files captions:a.jsonl, command score a.jsonl --metrics rouge_l -o runs/a"
    assert execute(f"<!-- setup: {setups} -->\n\n    mmeval lint runs/a\n", "page").is_good
    with pytest.raises(ValueError, match=r"`mmeval score nothing.jsonl` has exit status 1, not 0:\n.*NOT_FOUND"):
        execute("<!-- setup: command score nothing.jsonl -->\n", "page")
    assert execute("<!-- setup: command exit=1 score nothing.jsonl -->\n", "page").is_good


def test_paths_of_packages_are_shown_under_another_name():
    import multimodal_eval

    with workspace() as work:
        folder = Path(multimodal_eval.__file__).parent
        row = f"│ here: {folder}/models{' ' * 60}│"  # the path of a checkout may be shorter
        shown = work.shown(f"{row}\nin {folder} it is\n")
    assert shown.splitlines()[0].split() == ["│", "here:", "/venv/site-packages/multimodal_eval/models", "│"]
    assert len(shown.splitlines()[0]) == len(row)
    assert shown.splitlines()[1] == "in /venv/site-packages/multimodal_eval it is"


def test_progress_on_a_busy_machine_is_not_part_of_an_output():
    written = StringIO()
    progress = ProgressLine(written, interval=0)
    progress("merging", 0, 1)
    progress.working_on("cider_d")
    progress("scoring", 2_000, 5_000)
    progress("scoring", 3_000, 5_000)
    assert len(written.getvalue().splitlines()) == 4
    kept = "correctness: 60 of 300 samples labelled\n! rouge_l: 1 of 4 (25.0 %): samples unscored\n"
    assert stripped(written.getvalue() + kept) == kept
