"""Help in layers, options that are settings of the configuration now, and older names."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click
import msgspec
import pytest
from click.testing import CliRunner

from multimodal_eval.cli.layers import (
    COMMANDS_RENAMED,
    EVERYDAY,
    MANY,
    MOVED,
    RENAMED,
    REPLACED,
    LayeredCommand,
    flag_of,
    section_of,
)
from multimodal_eval.cli.main import COMMANDS, cli
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import NothingScoredError
from multimodal_eval.evaluation.tasks_config import TASKS

MOST_OPTIONS, MOST_COMMANDS = 40, 25


def commands(command: click.Command = cli) -> Iterator[LayeredCommand]:
    """Every command."""
    assert isinstance(command, LayeredCommand), command.name
    yield command
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        yield from commands(below)


def shown(*arguments: str) -> str:
    return CliRunner().invoke(cli, arguments, catch_exceptions=False).output


def test_no_command_has_more_options_than_people_read():
    assert len(COMMANDS) <= MOST_COMMANDS
    for command in commands():
        assert len(command.shown()) <= MOST_OPTIONS, command.path
        short = [flag_of(option) for option in command.shown(everything=False)]
        assert len(short) <= MANY, command.path
        missing = set(EVERYDAY.get(command.path, "").split()) - set(short)
        assert missing == set(), (command.path, missing)


def test_every_option_has_a_section():
    for command in commands():
        for option in command.params:
            if isinstance(option, click.Option):
                assert section_of(command.path, flag_of(option)), (command.path, flag_of(option))


def test_help_has_two_layers():
    short, everything = shown("run", "--help"), shown("run", "--help-all")
    assert "--shots" not in everything
    assert "\n  --budget " not in short
    assert "\n  --budget " in everything
    assert "--help-all" in short
    assert "more options" in short
    assert everything.index("\nInput:") < everything.index("\nMetrics:") < everything.index("\nModel:")
    assert "--top-p" not in everything
    assert [line for line in shown("--help").splitlines() if line.startswith("  score ")]
    assert all(name in shown("score", "--help") for name in TASKS)


def test_an_option_moves_to_a_setting_of_a_command_that_reads_the_configuration():
    by_path = {command.path: command for command in commands()}
    for path, moved in MOVED.items():
        flags = {flag_of(option) for option in by_path[path].params}
        assert "--config" in flags, path
        for key in moved.values():
            head, _, rest = key.partition(".")
            known = msgspec.json.schema(RunConfig)["$defs"]
            assert head in known["RunConfig"]["properties"], key
            if head == "generation":
                names = rest.split(".")
                assert names[0] in known["GenerationConfig"]["properties"], key
            if head == "judges":
                assert rest.split(".")[-1] in known["JudgeConfig"]["properties"], key
    assert not RENAMED.keys() & REPLACED.keys()


def test_older_names_work_with_a_warning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for older, newer in COMMANDS_RENAMED.items():
        assert f"! mmeval {older} is now: mmeval {' '.join(newer)}" in shown(older, "--help")
    schema = shown("schema")
    assert json.loads(schema.partition("\n")[2])["title"] == "mmeval run configuration"
    rows = [{"id": n, "generated_answer": "a dog", "references": ["a dog"], "question": "?"} for n in range(3)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = shown("score", "data.jsonl", "--metrics", "exact_match", "--seed", "3", "--no-report", "-o", "run")
    assert "! --seed is replaced by the setting seed of --config FILE and works until 0.3" in done
    done = shown("score", "data.jsonl", "--metric=exact_match", "--min-coverage", "0.5", "--no-report", "-o", "other")
    assert "! --metric is called --metrics now" in done
    assert "! --min-coverage is replaced by --fail-under coverage=SHARE" in done
    assert (tmp_path / "other" / "results.json").is_file()


def test_the_setting_takes_the_place_of_the_option(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.jsonl").write_text('{"id": 1, "question": "?", "references": ["a"]}\n')
    (tmp_path / "run.yaml").write_text("generation: {parameters: {top_p: 0.5}, max_pixels: 9}\n")
    asked = ["run", "data.jsonl", "--model", "echo:", "--metrics", "none", "--no-cache"]
    shown(*asked, "--config", "run.yaml", "-o", "new")
    shown(*asked, "--top-p", "0.5", "--max-pixels", "9", "-o", "old")
    new, old = (json.loads((tmp_path / name / "run.json").read_text())["config"] for name in ("new", "old"))
    assert new["generation"] == old["generation"]


@pytest.mark.parametrize(("coverage", "code"), [("0.5", 0), ("0.9", 3), ("2", 2)])
def test_the_least_coverage_is_a_limit(tmp_path, monkeypatch, coverage, code):
    monkeypatch.chdir(tmp_path)
    rows = [{"id": n, "generated_answer": answer, "references": ["a"]} for n, answer in enumerate(["a", "b", None])]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ["score", "data.jsonl", "--metrics", "exact_match", "--no-report", "-o", "run"]
    result = CliRunner().invoke(cli, [*arguments, "--fail-under", f"coverage={coverage}"], standalone_mode=True)
    assert result.exit_code == code or type(result.exception).__name__ == {3: "ThresholdError"}.get(code)


def test_an_error_of_run_names_the_setting_instead_of_an_option_that_is_not_shown(tmp_path):
    data = tmp_path / "x.jsonl"
    data.write_text('{"id": "1", "question": "Which?"}\n')
    command = ["run", str(data), "--model", "echo", "--metrics", "exact_match", "-o", str(tmp_path / "run")]
    with pytest.raises(NothingScoredError, match=r"without scores: `allow_empty: true` in the file of --config"):
        CliRunner().invoke(cli, command, catch_exceptions=False)
    with pytest.raises(NothingScoredError, match="without scores: --allow-empty"):
        CliRunner().invoke(cli, ["score", *command[1:2], *command[4:]], catch_exceptions=False)


def test_what_messages_recommend_for_run_is_a_plain_option():
    by_path = {command.path: command for command in commands()}
    plain = {flag_of(option) for option in by_path["run"].shown()}
    assert {"--allow-partial", "--option", "--map", "--metrics", "--judge", "--data", "--plugin"} <= plain
