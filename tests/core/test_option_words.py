"""What an option that a message names is in Python, and in a configuration file."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest

import multimodal_eval
from multimodal_eval import evaluate
from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.core.option_words import arguments_in, options_in, with_settings

# Options without an argument in Python: of commands that have no function such as `mmeval view`, of files for a contest
# or a batch API, of what is printed, and of other programs.
OF_COMMANDS = set(
    "--annotator --any-language --batch-in --batch-out --effect --engine --failed-answers --fetch --format --format-in "
    "--host --judge-url --label --label-run --lower --no-logprobs --order --pairwise --plan --present-types-only "
    "--question --resume --rule --scale --scores --set --show-request --site --synonyms --unit --why".split()
)
OF_OTHERS = set(
    "--backend-store-uri --dest --disable-pip-version-check --local-dir --no-deps --only-binary --port --project "
    "--quiet --repo-type --target --version".split()
)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("Use --allow-partial to compare the remaining samples.", ["allow_partial=True"]),
        ("To count it as wrong: --unknown-labels wrong.", ["unknown_labels='wrong'"]),
        ("or name a directory: --option clip_score.model=DIR", ["options={'clip_score': {'model': 'DIR'}}"]),
        ("add: --map references=gold", ["map={'references': 'gold'}"]),
        ("a task (--task vqa) or metrics (--metrics cider_d)", ["task='vqa'", "metrics=['cider_d']"]),
        ("Check --model and --base-url.", ["model=…", "generation={'base_url': …}"]),
        ("Raise --max-tokens, or", ["generation={'parameters': {'max_tokens': …}}"]),
        ("continue it with: mmeval score --resume runs/a --allow-empty", []),  # a whole command
        ("--scale 1-5 does not fit", []),
        ("--labels must be between 1 and 5", ["labels=…"]),
    ],
)
def test_options_as_arguments(text, arguments):
    assert arguments_in(text) == arguments


def messages():
    """The texts of the package outside of the command line that name an option, without docstrings."""
    package = Path(multimodal_eval.__file__).parent
    for path in package.rglob("*.py"):
        if "cli" in path.parts:
            continue
        tree = ast.parse(path.read_text("utf-8"))
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "X" for part in node.values]
                yield path.relative_to(package), "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield path.relative_to(package), node.value


def test_every_option_in_a_message_has_an_argument_or_belongs_to_a_command():
    without = {
        flag
        for path, text in messages()
        if path.name != "option_words.py"
        for flag, value in options_in(text)
        if not arguments_in(f"{flag} {value}")
    }
    assert without == OF_COMMANDS | OF_OTHERS


def test_an_error_names_the_arguments_in_a_note(tmp_path):
    gold, answers = tmp_path / "gold.csv", tmp_path / "answers.csv"
    gold.write_text("id,references\n1,a\n2,b\n")
    answers.write_text("id,generated_answer\n1,a\n")
    with pytest.raises(InputError, match="--allow-partial") as raised:
        evaluate(gold, answers, metrics=["exact_match"])
    assert raised.value.__notes__ == ["In Python: allow_partial=True, only_answered=True"]
    assert pickle.loads(pickle.dumps(raised.value)).__notes__ == raised.value.__notes__
    assert not hasattr(ConfigError("no option"), "__notes__")


def test_settings_of_a_configuration_file():
    settings = {"--allow-empty": "allow_empty", "--system": "generation.system"}
    text = "(--system TEXT), or --allow-empty to continue: mmeval run --resume a --allow-empty"
    assert with_settings(text, settings) == (
        "(`generation: {system: TEXT}` in the file of --config), or `allow_empty: true` in the file of --config to "
        "continue: mmeval run --resume a --allow-empty"
    )
