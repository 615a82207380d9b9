"""The documentation matches the program."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

import multimodal_eval
from multimodal_eval.evaluation.metrics_registry import list_available
from multimodal_eval.evaluation.tasks_config import TASKS
from multimodal_eval.run.config import json_schema, load_config
from tests.docs.update_pages import METRICS_PAGE, with_metrics

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_published_schema_matches_the_code():
    assert json.loads((ROOT / "docs" / "run.schema.json").read_text()) == json_schema()


def test_the_documented_configuration_is_valid():
    text = (ROOT / "docs" / "configuration.md").read_text()
    example = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[0]
    jsonschema.validate(yaml.safe_load(example), json_schema())
    config = yaml.safe_load(example)
    assert load_config(config).task == config["task"]


def test_the_schema_refuses_what_the_program_refuses():
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"taks": "captioning"}, json_schema())


def test_ci_runs_the_readmes_test_command():
    commands = re.findall(r"^    (python3 -m venv .+)$", README, re.MULTILINE)
    demo, tests = commands
    assert demo.endswith("mmeval demo --fetch")
    setup, _, check = tests.rpartition(" && ")
    ci = (ROOT / ".ci" / "run").read_text()
    assert check.split("/", 1)[1] in ci
    # CI installs the same versions with checked hashes; `tests/tools/test_requirements.py` compares the files.
    assert setup.endswith('pip install -q -c constraints.txt ".[test]"')
    assert "bash .ci/install" in ci
    assert "--require-hashes --no-deps -r .ci/requirements.txt" in (ROOT / ".ci" / "install").read_text()


def test_the_page_lists_every_task():
    for name in TASKS:
        assert f"| `{name}` |" in METRICS_PAGE.read_text(encoding="utf-8")


def test_the_table_of_metrics_is_generated():
    page = METRICS_PAGE.read_text(encoding="utf-8")
    assert with_metrics(page) == page, "run: python tests/docs/update_pages.py metrics"
    for name in list_available():
        assert f"| [`{name}`](metrics/{name}.md) |" in page


def test_every_public_name_exists():
    for name in multimodal_eval.__all__:
        assert getattr(multimodal_eval, name) is not None
    assert sorted(multimodal_eval.__all__) == multimodal_eval.__all__
    with pytest.raises(AttributeError):
        _ = multimodal_eval.nothing


def test_the_changelog_has_a_section_for_this_version():
    version, _, dev = multimodal_eval.__version__.partition(".dev")
    date = r"\(unreleased\)" if dev else r"\(\d{4}-\d\d-\d\d\)"
    assert re.search(
        rf"^# Changelog\n\n## {re.escape(version)} {date}$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )


def test_every_lint_code_is_documented():
    from multimodal_eval.lint.findings import CODES

    table = re.findall(r"^\| (`[A-Z_`, ]+`) \|", (ROOT / "docs" / "lint.md").read_text(), re.MULTILINE)
    assert re.findall(r"[A-Z_]+", " ".join(table)) == list(CODES)
