"""Output in a terminal of 80 columns: tables without cut names, and the help of every command."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner
from rich.console import Console
from rich.table import Table

from multimodal_eval import Sample, evaluate
from multimodal_eval.analysis.judge_calibration import calibration_of
from multimodal_eval.cli.examples import EXAMPLES, SHORT
from multimodal_eval.cli.finish import print_blocks, print_result
from multimodal_eval.cli.main import cli
from multimodal_eval.display import blocks
from multimodal_eval.display import console as terminal
from multimodal_eval.display.blocks import Row
from tests.run.labelled_samples import judged_samples


@pytest.fixture
def narrow(monkeypatch):
    """A terminal of 80 columns, and what it shows."""
    out = io.StringIO()

    class Narrow(Console):
        def __init__(self, **settings):
            super().__init__(**{**settings, "file": out, "width": 80})

    monkeypatch.setattr("rich.console.Console", Narrow)
    return lambda: out.getvalue()


def lines(text):
    return text.splitlines()


def wide_table(names, columns, value="0.1234 … 0.5678"):
    rows = [Row([name, *[value] * columns]) for name in names]
    return [blocks.Table(["metric", *(f"column {number}" for number in range(columns))], rows, title="title")]


def test_a_table_that_fits(narrow):
    print_blocks(wide_table(["contextual_relevance"], 2))
    assert "contextual_relevance   0.1234 … 0.5678   0.1234 … 0.5678\n" in narrow()


def test_a_table_that_is_too_wide_has_smaller_gaps(narrow):
    print_blocks(wide_table(["contextual_relevance"], 3))  # 20 + 3 * (15 + 3) characters
    print_blocks(wide_table(["contextual_relevance_of_all"], 3))
    assert "contextual_relevance   0.1234 … 0.5678   0.1234" in narrow()
    assert "contextual_relevance_of_all  0.1234 … 0.5678  0.1234" in narrow()
    assert max(map(len, lines(narrow()))) <= 80


def test_a_table_that_is_still_too_wide_is_shown_in_blocks(narrow):
    print_blocks(wide_table(["contextual_relevance", *"abcd"], 7))  # turned round, it has 5 columns, which do not fit
    assert max(map(len, lines(narrow()))) <= 80
    assert narrow().count("contextual_relevance ") == 3  # 3 + 3 + 1 columns
    assert narrow().count("title") == 1
    assert all(f"column {number}" in narrow() for number in range(7))


def test_long_names_are_folded(narrow):
    table = Table("a", "b")
    table.add_row("x" * 70, "y" * 70)
    terminal.console().print(table)
    assert narrow().count("x") == narrow().count("y") == 70


def test_a_run_fits_and_shows_its_headline_kinds_and_composite(narrow):
    samples = [
        Sample(
            str(n), generated_answer="a dog", references=["a dog runs"], metadata={"a_long_column_name": f"v{n % 2}"}
        )
        for n in range(4)
    ]
    tasks = {"mine": {"metrics": ["bleu", "rouge_l", "exact_match"], "weights": {"rouge_l": 0.5, "exact_match": 0.5}}}
    run = evaluate(samples, task="mine", tasks=tasks, by=["a_long_column_name"], skip_lint=True)
    print_result(run, "table")
    out = narrow()
    assert max(map(len, lines(out))) <= 80
    assert "composite_score ★" in out
    assert "mean: of the samples" in " ".join(out.split())
    assert "\nBLEU-4 " in out
    assert "composite_score is the mean of the composites of 4 samples" in out
    assert "\npart, as it enters" in out
    assert "corpus" in out
    assert "exact_match" in out.split("by a_long_column_name")[1]


def test_scores_that_labels_correct_fit(narrow):
    run = evaluate(judged_samples(), metrics=["exact_match"], human={"exact_match": "rating"}, by=["kind"])
    print_result(run, "table")
    print_result(calibration_of(run, "exact_match"), "table")
    assert max(len(line) for line in lines(narrow()) if "─" in line) <= 80
    assert "\n  calibrated " in narrow()
    assert "60 labels" in narrow()


def test_a_pipe_is_as_wide_as_columns_says(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert terminal.console().width == 120
    monkeypatch.setenv("COLUMNS", "80")
    assert terminal.console().width == 80
    monkeypatch.setenv("COLUMNS", "wide")
    assert terminal.console().width == 120


def every_command(command=cli, path=""):
    yield path, command
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from every_command(inner, f"{path} {name}".strip())


COMMANDS = dict(every_command())


def test_every_command_has_examples_and_nothing_else_has():
    assert set(EXAMPLES) == set(COMMANDS)
    assert set(SHORT) <= set(COMMANDS)


def test_the_help_has_examples_and_fits(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    missing = []
    for path in COMMANDS:
        shown = CliRunner().invoke(cli, [*path.split(), "--help"], prog_name="mmeval", terminal_width=80).output
        expected = ["Examples:\n", *(f"    {example}\n" for example in EXAMPLES[path])]
        missing += [f"{path}: {text}" for text in expected if text not in shown]
        commands = shown.partition("\nCommands:\n")[2].partition("\n\n")[0]
        missing += [f"{path}: {line}" for line in commands.splitlines() if "..." in line]  # no short line is cut
    assert missing == []


def is_a_sentence(text: str, path: str) -> bool:
    if not text.endswith((".", ".)")):
        return False
    return text[0].isupper() or not text[0].isalpha() or path.split()[0] in ("clarity", "dialogue", "leaderboard")


def test_every_option_is_explained_in_a_sentence():
    assert [
        f"{path}: {parameter.name}"
        for path, command in COMMANDS.items()
        for parameter in command.params
        if isinstance(parameter, click.Option)
        and not is_a_sentence((parameter.help or "").partition("  [default")[0], path)
    ] == []


def unknown_options(example: str) -> set[str]:
    words = shlex.split(example.partition(" > ")[0])[1:]
    command: click.Command = cli
    while words and isinstance(command, click.Group) and words[0] in command.commands:
        command = command.commands[words.pop(0)]
    if isinstance(command, click.Group):
        command = command.commands["score"]
    options = {name for parameter in command.params for name in parameter.opts}
    return {word for word in words if word.startswith("-")} - options


def test_examples_use_options_that_exist():
    examples = sorted({line for lines in EXAMPLES.values() for line in lines})
    assert len(examples) > 90
    assert [f"{example}: {unknown}" for example in examples if (unknown := unknown_options(example))] == []


def test_a_reader_that_leaves_is_not_an_exit(monkeypatch):
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Closed())
    with pytest.raises(BrokenPipeError):  # which `main` takes as the end of `mmeval … | head`
        terminal.console().print("a line")


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["ls", "metrics"]])
def test_a_closed_pipe_is_the_end_of_the_output(arguments):
    script = "import sys; from multimodal_eval.cli.main import main; sys.argv = ['mmeval', *sys.argv[1:]]; main()"
    reading, writing = os.pipe()
    os.close(reading)  # as after `mmeval … | head -0`
    try:
        done = subprocess.run([sys.executable, "-c", script, *arguments], stdout=writing, stderr=subprocess.PIPE)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
