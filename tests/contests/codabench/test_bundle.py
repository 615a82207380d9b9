"""The bundle: what is in it, what is not, and data or settings that make no bundle."""

from __future__ import annotations

import base64
import json
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from PIL import Image

from multimodal_eval.cli.main import cli
from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.core.yaml_text import parse_yaml
from multimodal_eval.interop.export.registry import export
from tests.contests.shared_task.tasks import GOOD, REFERENCES, SECRETS, jsonl, platform, write_data


def bundled(folder: Path, data: Path | None = None, **options: Any) -> dict[str, bytes]:
    """The files of a bundle."""
    target = folder / "bundle.zip"
    export(data or write_data(folder), "codabench", target, overwrite=True, **options)
    with zipfile.ZipFile(target) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "other.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_every_file_that_the_description_names_is_in_the_bundle(tmp_path: Path) -> None:
    files = bundled(tmp_path, metrics=["exact_match"], title="Things", end="2027-01-31")
    competition = parse_yaml(files["competition.yaml"].decode())
    assert competition["version"] == 2
    assert competition["title"] == "Things"
    (task,), (phase,), (leaderboard,) = (competition[key] for key in ("tasks", "phases", "leaderboards"))
    folders = {name.split("/")[0] for name in files if "/" in name}
    assert {task["scoring_program"], task["reference_data"], phase["public_data"], phase["starting_kit"]} <= folders
    assert {competition["image"], competition["terms"], *(page["file"] for page in competition["pages"])} <= {*files}
    assert phase["tasks"] == [task["index"]]
    assert (str(phase["start"]), str(phase["end"])) == ("2026-01-01 00:00:00", "2027-01-31 00:00:00")
    assert phase["accepts_only_result_submissions"] is True
    assert [column["index"] for column in leaderboard["columns"]] == [*range(len(leaderboard["columns"]))]
    assert Image.open(BytesIO(files["logo.png"])).size == (128, 128)


def test_the_columns_are_the_keys_of_the_scores(tmp_path: Path) -> None:
    app = platform(tmp_path, metrics=("wer", "exact_match"))
    app.submit("answers.jsonl", jsonl(GOOD))
    assert app.score() == 0
    competition = parse_yaml((tmp_path / "bundle" / "competition.yaml").read_text())
    columns = {column["key"]: column for column in competition["leaderboards"][0]["columns"]}
    assert list(columns)[:3] == ["wer", "wer_low", "wer_high"]  # the headline ranks
    assert columns.keys() == json.loads((app.output / "scores.json").read_text()).keys()
    assert columns["wer"]["sorting"] == "asc"
    assert columns["exact_match"]["sorting"] == "desc"
    assert all(key.replace("_", "").isalnum() for key in columns)


def test_participants_get_the_inputs_and_no_secret(tmp_path: Path) -> None:
    files = bundled(tmp_path, metrics=["exact_match"])
    for name, content in files.items():
        for secret in SECRETS:
            assert (secret in content.decode("latin-1")) == (name == "reference_data/reference.jsonl")
    public = [json.loads(line) for line in files["public_data/data.jsonl"].splitlines()]
    assert public[0] == {"id": "a", "question": "what is a?"}
    example = [json.loads(line) for line in files["starting_kit/answers.jsonl"].splitlines()]
    assert [record["id"] for record in example] == list(REFERENCES)
    assert b"old" not in files["reference_data/reference.jsonl"]  # the answers of the data are not used


def test_the_example_is_a_valid_submission(tmp_path: Path) -> None:
    app = platform(tmp_path)
    app.submit("answers.jsonl", (tmp_path / "bundle" / "starting_kit" / "answers.jsonl").read_bytes())
    assert app.score() == 0


def test_the_same_bundle_twice(tmp_path: Path) -> None:
    contents = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        bundled(tmp_path / name, metrics=["bleu"])
        contents.append((tmp_path / name / "bundle.zip").read_bytes())
    assert contents[0] == contents[1]


def test_a_configuration_with_a_plugin(tmp_path: Path) -> None:
    plugin = tmp_path / "length_plugin.py"
    plugin.write_text(
        "from multimodal_eval import metric\n\n\n"
        '@metric("shared_task_length", needs=("generated_answer",), bounds=(0, None))\n'
        "def compute_length(sample):\n"
        "    return float(len(sample.generated_answer))\n"
    )
    config = tmp_path / "run.yaml"
    config.write_text(f"metrics: [shared_task_length]\nplugins: [{plugin}]\n")
    app = platform(tmp_path, metrics=("shared_task_length",), config=str(config))
    plugin.unlink()  # the bundle has a copy
    app.submit("answers.jsonl", jsonl({"a": "1", "b": "22", "c": "333", "d": "4444"}))
    done = app.call()  # this process has the plug-in already
    assert done.returncode == 0, done.stdout
    assert json.loads((app.output / "scores.json").read_text())["shared_task_length"] == 2.5  # (1 + 2 + 3 + 4) / 4
    assert str(tmp_path) not in (app.app / "input" / "ref" / "reference.jsonl").read_text()


def test_packages_come_first(tmp_path: Path) -> None:
    # If multimodal_eval is installed in editable mode, its import hook comes before every path: msgspec is next.
    packages = tmp_path / "packages"
    for name in ("multimodal_eval", "msgspec"):
        (packages / name).mkdir(parents=True)
        (packages / name / "__init__.py").write_text("raise SystemExit('the packages of the bundle')\n")
    app = platform(tmp_path, packages=str(packages))
    assert "the packages of the bundle" in app.call().stderr


def test_a_machine_without_the_package_says_so(tmp_path: Path) -> None:
    done = platform(tmp_path).call("-I", "-S")  # without installed packages
    assert done.returncode == 2
    assert "This is not a mistake in the submission." in done.stdout
    assert "Organisers: the image needs multimodal-eval" in done.stdout


def test_images_that_a_metric_needs_are_in_the_reference_file(tmp_path: Path) -> None:
    plugin = tmp_path / "image_plugin.py"
    plugin.write_text(
        "from multimodal_eval import metric\n\n\n"
        '@metric("shared_task_image", needs=("generated_answer", "image"), bounds=(0, 1))\n'
        "def compute_image(sample):\n"
        '    return float(sample.image.startswith("data:"))\n'
    )
    config = tmp_path / "run.yaml"
    config.write_text(f"metrics: [shared_task_image]\nplugins: [{plugin}]\n")
    Image.new("RGB", (2, 2)).save(tmp_path / "x.png")
    data = written(tmp_path, {"id": "a", "image": "x.png", "references": ["b"]})
    files = bundled(tmp_path, data, config=str(config))
    sample = json.loads(files["reference_data/reference.jsonl"].splitlines()[1])
    assert base64.b64decode(sample["image"].partition(",")[2]) == (tmp_path / "x.png").read_bytes()
    assert json.loads(files["public_data/data.jsonl"]) == {"id": "a", "image": "x.png"}
    (tmp_path / "x.png").unlink()
    with pytest.raises(ConfigError, match="the sample 'a'"):
        bundled(tmp_path, data, config=str(config))


def test_a_sample_that_no_answer_can_have_a_score_for(tmp_path: Path) -> None:
    data = written(tmp_path, {"id": "a", "references": ["x"]}, {"id": "b", "question": "?"})
    with pytest.raises(ConfigError, match=r"(?s)as a trial, which failed.*exact_match cannot score.*id 'b'"):
        bundled(tmp_path, data, metrics=["exact_match"])


def test_wrong_data_are_refused_with_their_problems(tmp_path: Path) -> None:
    data = written(tmp_path, {"id": "a", "references": ["x"]}, {"id": "a", "references": ["y"]})
    with pytest.raises(InputError, match="DUPLICATE"):
        bundled(tmp_path, data, metrics=["exact_match"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ["exact_match"], "start": "soon"}, "`start`.*must be a time such as"),
        ({"metrics": ["exact_match"], "end": "2025-01-01"}, "`end` must be after `start`"),
        ({"metrics": ["exact_match"], "packages": "nowhere"}, "nowhere has no multimodal_eval"),
        ({"metrics": ["exact_match"], "details": "all"}, "one of scores, samples"),
        ({}, "name a task"),
    ],
)
def test_wrong_options(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        bundled(tmp_path, **options)
    assert not (tmp_path / "bundle.zip").exists()


def test_settings_that_a_bundle_cannot_have(tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text("metrics: [exact_match]\ngeneration: {model: 'openai:x'}\n")
    with pytest.raises(ConfigError, match="come from its participants"):
        bundled(tmp_path, config=str(config))


def test_the_command(tmp_path: Path) -> None:
    data = write_data(tmp_path)
    config = tmp_path / "run.yaml"
    config.write_text("metrics: [exact_match]\n")
    target = tmp_path / "bundle.zip"
    words = ["export", "--to", "codabench", str(data), "--config", str(config), "-o", str(target)]
    done = CliRunner().invoke(cli, [*words, "--set", "docker_image=me/eval:1", "--set", "max_submissions=7"])
    assert done.exit_code == 0, done.output
    with zipfile.ZipFile(target) as archive:
        competition = parse_yaml(archive.read("competition.yaml").decode())
    assert competition["docker_image"] == "me/eval:1"
    assert competition["phases"][0]["max_submissions"] == 7
    again = CliRunner().invoke(cli, words)
    assert again.exit_code == 1
    assert "already exists" in str(again.exception)


def test_a_run_is_not_data(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(ConfigError, match="takes the data with the references"):
        export(tmp_path, "codabench", tmp_path / "bundle.zip", metrics=["bleu"])
