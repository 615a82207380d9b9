"""Opening a run folder executes nothing that it names and reads nothing outside of what the command allows."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from starlette.testclient import TestClient

from multimodal_eval import Sample, evaluate, load_run, rescore, resume
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.data.runs.run import Run
from multimodal_eval.report.build import icon
from multimodal_eval.report.viewer.app import create_app
from multimodal_eval.report.viewer.guard import host_check
from multimodal_eval.run.engine.base import Job
from multimodal_eval.run.rescore import rescoring_plan
from multimodal_eval.run.step import RunContext
from multimodal_eval.run.steps.score import Score
from tests.hostile.campaign import EVERY
from tests.hostile.foreign import Place, edited, mmeval, put, received, texts
from tests.registry_state import forget_plugins
from tests.report.viewer.viewed import HOST, PORT, client, compared, wav
from tests.run.caption_samples import samples

PLUGIN = Path(__file__).parents[1] / "run" / "plugin.py"
METRICS = ["cider", "slow_words", "corpus_precision", "rouge_l"]  # the second and the third are of the plug-in
ROUTES = (
    *("/", "/runs.csv", "/run/a", "/samples/a", "/sample/a?row=0", "/media/a?row=0", "/progress/a"),
    *("/export/run.csv/a", "/export/samples.csv/a", "/compare?run=a&run=b", "/compare/numbers?run=a&run=b"),
    *("/compare/numbers.csv?run=a&run=b", "/pairs?run=a&run=b", "/pairs.csv?run=a&run=b"),
)
COMMANDS = (
    ("compare", "A", "B", "--allow-partial", "--rounds", "100"),
    ("report", "A", "B", "-o", "OUT/report.html"),
    ("report", "A", "-o", "OUT/one.html"),
    ("rescore", "A", "--config", "OUT/config.yaml", "-o", "OUT/new"),
    ("score", "--resume", "A"),
    ("score", "--resume", "C"),  # interrupted while it was reading
    ("lint", "A"),
    ("ls", "runs", "RUNS"),
    ("meta", "A", "--human", "system"),
    ("compare", "A", "B", "--vary-weights"),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a plug-in."""
    folder = tmp_path_factory.mktemp("made")
    evaluate(samples(12), metrics=METRICS, plugins=[str(PLUGIN)], output=folder / "a")
    forget_plugins()
    return folder / "a"


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A plug-in that leaves a mark when it is imported: a file beside it."""
    file = tmp_path / "canary" / "canary.py"
    file.parent.mkdir()
    file.write_text(f"{PLUGIN.read_text()}\nopen(__file__ + '.ran', 'w').close()\n")
    return file


def has_run(canary: Path) -> bool:
    return canary.with_name("canary.py.ran").exists()


def places_of(made: Path) -> list[Place]:
    """Every text of run.json, and keys that it does not have now."""
    config = ("config", "plugins"), ("config", "labels"), ("config", "questions"), ("config", "image_root")
    more = (*config, ("config", "options"), ("config", "tasks"), ("config", "task"), ("config", "metrics"))
    return [*dict.fromkeys([*texts(json.loads((made / "run.json").read_text())), *more, ("plugins",), ("source",)])]


def values_for(place: Place, canary: Path) -> list[object]:
    """The canary as the value of a place: as a path, as a list, and as settings that would open a file."""
    path = str(canary)
    by_key: dict[Any, list[object]] = {
        "plugins": [[path], {path: "0" * 64}],
        "options": [{"cider": {"df": path}, "rouge_l": {"tokenizer": path}}, {"slow_words": {"encoder": path}}],
        "tasks": [{"t": {"metrics": [path]}}],
        "metrics": [[path], [path.removesuffix(".py").replace("/", ".")]],
        "source": [{"data": path, "predictions": path}],
        "labels": [path, [path]],
    }
    return by_key.get(place[-1], [path])


def attack(folder: Path, made: Path, canary: Path, place: Place, value: object) -> None:
    """Call every command and every page of the viewer with the value in the run.json of all runs."""
    runs = folder / "runs"
    for name in ("a", "b", "c"):
        edited(received(made, runs / name), lambda info: put(info, place, value))
    edited(runs / "c", lambda info: info.update(state="reading"))
    (folder / "config.yaml").write_text("metrics: [cider, slow_words]\n")
    words = {"A": str(runs / "a"), "B": str(runs / "b"), "C": str(runs / "c"), "RUNS": str(runs)}
    for command in COMMANDS:
        printed = mmeval(*(words.get(word, word.replace("OUT", str(folder))) for word in command))
        assert not has_run(canary), command
        assert printed.code in (0, 1, 3), command
    with client(runs) as browser:
        for route in ROUTES:
            browser.get(route)
            assert not has_run(canary), route
    for call in (
        lambda: load_run(runs / "a"),
        lambda: compare_runs([runs / "a", runs / "b"], allow_partial=True, rounds=100),
        lambda: resume(runs / "c"),
        lambda: rescore(runs / "a", {"metrics": METRICS}),
    ):
        with suppress(Exception):  # refused or not: it must not run the canary
            call()
        assert not has_run(canary)


def test_the_canary_can_sing(canary):
    from multimodal_eval.core.registry import load_plugin

    load_plugin(canary)
    assert has_run(canary)


@pytest.mark.parametrize("key", ["plugins", "options", "tasks", "metrics", "labels"])
def test_nothing_that_the_configuration_names_is_imported(made, canary, tmp_path, key):
    for number, value in enumerate(values_for(("config", key), canary)):
        (tmp_path / str(number)).mkdir()
        attack(tmp_path / str(number), made, canary, ("config", key), value)


@pytest.mark.slow
def test_nothing_that_run_json_names_is_imported(made, canary, tmp_path):
    # A tenth of the places; `.ci/long hostile` tries all of them.
    places = places_of(made)[:: 1 if EVERY else 10]
    for number, place in enumerate(places):
        for turn, value in enumerate(values_for(place, canary)):
            folder = tmp_path / f"{number}-{turn}"
            folder.mkdir()
            attack(folder, made, canary, place, value)
            shutil.rmtree(folder)


def test_rescore_refuses_another_content_of_the_plugin(made, tmp_path):
    other = tmp_path / "plugin.py"
    other.write_text(PLUGIN.read_text() + "\n# changed\n")
    with pytest.raises(RunFolderError, match="another content of the plug-in that defines slow_words"):
        rescore(made, {"metrics": ["cider", "slow_words"]}, plugins=[other])
    forget_plugins()
    assert rescore(made, {"metrics": ["cider"]}, plugins=[other]).metrics == ["cider"]  # it needs none of them
    forget_plugins()
    assert rescore(made, {"metrics": ["cider", "slow_words"]}, plugins=[PLUGIN]).metrics == ["cider", "slow_words"]


def test_labels_that_name_a_file_are_not_read(tmp_path):
    secret = tmp_path / "secret.yaml"
    secret.write_text("- the secret label\n")
    rows = [{"id": str(row), "expected_answer": "yes", "generated_answer": "yes"} for row in range(4)]
    evaluate(rows, metrics=["f1_strict"], output=tmp_path / "a")
    runs = [received(tmp_path / "a", tmp_path / name) for name in ("b", "c")]
    for run in runs:
        edited(run, lambda info: info["signatures"]["f1_strict"]["options"].update(labels=str(secret)))
    with pytest.raises(Exception, match="f1_strict") as refused:
        compare_runs(runs, metrics=["f1_strict"], rounds=100)
    assert "secret label" not in str(refused.value)


# media


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Somebody's files: an image and audio that a run must not show, and a text that must not be quoted."""
    home = tmp_path / "home"
    home.mkdir()
    Image.new("RGB", (30, 20), (1, 200, 3)).save(home / "private.png")
    (home / "private.wav").write_bytes(wav())
    (home / "passwords.txt").write_text("hunter2 is the password")
    return home


WORDS = "a b c d e f"


@pytest.fixture
def sent(tmp_path: Path, home: Path) -> Path:
    """Runs that somebody sent, which name files of the user and ask for everything."""
    rows = [
        Sample("image", image=str(home / "private.png"), references=[WORDS], generated_answer=WORDS[:2]),
        Sample("audio", audio=str(home / "private.wav"), references=[WORDS], generated_answer=WORDS[:4]),
        Sample("text", image=str(home / "passwords.txt"), references=[WORDS], generated_answer=WORDS[:6]),
        Sample("relative", image="home/private.png", references=[WORDS], generated_answer=WORDS[:8]),
        Sample("link", image="link.png", references=[WORDS], generated_answer=WORDS[:10]),
        Sample("url", image="http://127.0.0.1:9/x.png", references=[WORDS], generated_answer=WORDS[:12]),
    ]
    evaluate(rows, metrics=["rouge_l"], output=tmp_path / "made")
    asked = {"image_root": "/", "allow_outside_images": True, "allow_image_urls": True, "media_roots": ["/"]}
    sent = received(tmp_path / "made", tmp_path / "sent" / "run")
    (sent / "link.png").symlink_to(home / "private.png")
    return edited(sent, lambda info: info["config"].update(asked))


def test_a_report_shows_no_file_outside_the_run(sent, tmp_path):
    page = tmp_path / "page.html"
    printed = mmeval("report", sent, "-o", page)
    assert printed.code == 0
    text = page.read_text().replace(icon(), "")
    assert "data:image" not in text
    assert "data:audio" not in text
    assert "hunter2" not in text
    assert "--media-root" in text  # the reason says what to do
    assert [image for image in text.split() if "private.png" in image]  # it is named


def test_the_viewer_shows_no_file_outside_the_run(sent):
    with client(sent.parent) as browser:
        for row, kind in enumerate(("image", "audio", "image", "image", "image", "image")):
            answer = browser.get(f"/media/run?row={row}&kind={kind}")
            assert answer.status_code == 404
            assert "hunter2" not in answer.text


def shown(folder: Path, *media_roots: Path) -> list[int]:
    """The status of the media of each sample in the viewer."""
    app = create_app(folder, compare=compared, accepts_host=host_check("127.0.0.1", PORT), media_roots=media_roots)
    with TestClient(app, base_url=f"http://{HOST}") as browser:
        kinds = enumerate(("image", "audio", "image", "image", "image", "image"))
        answers = [browser.get(f"/media/run?row={row}&kind={kind}") for row, kind in kinds]
    assert not any("hunter2" in answer.text for answer in answers)  # a message quotes no content of a file
    return [answer.status_code for answer in answers]


def test_media_root_allows_a_folder(sent, home, tmp_path):
    page = tmp_path / "page.html"
    assert mmeval("report", sent, "-o", page, "--media-root", home).code == 0
    assert "data:image" in page.read_text()
    # Image, audio, a text, a relative path, a link in the run folder, a URL.
    assert shown(sent.parent) == [404] * 6
    assert shown(sent.parent, home) == [200, 200, 404, 404, 200, 404]
    assert shown(sent.parent, home.parent) == [200, 200, 404, 200, 200, 404]
    assert shown(sent.parent, tmp_path / "sent") == [404] * 6


def test_a_run_of_the_user_shows_its_media(sent, tmp_path):
    page = tmp_path / "page.html"
    mmeval("report", tmp_path / "made", "-o", page)
    assert page.read_text().count("data:image") >= 1


# rescore and resume


def test_a_rescored_run_does_not_inherit_the_requests(sent, tmp_path):
    new = rescore(sent, {"metrics": ["rouge_l", "bleu"]}, output=tmp_path / "new")
    config = new.info.config
    assert (config.image_root, config.allow_outside_images, config.allow_image_urls) == (str(sent), False, False)
    assert config.media_roots == []


@pytest.mark.parametrize("option", ["SECRET", "torch:SECRET", "torch:SECRET+int8"])
def test_files_in_options_are_not_read_without_consent(sent, home, tmp_path, option):
    options = {"rouge_l": {"tokenizer": option.replace("SECRET", str(home))}}
    edited(sent, lambda info: info["config"].update(options=options))
    with pytest.raises(RunFolderError, match=r"names a file to read: .*home \(the option `tokenizer` of rouge_l\)"):
        rescore(sent, {"metrics": ["rouge_l"]})
    edited(sent, lambda info: info.update(state="scoring", finished=None))
    with pytest.raises(RunFolderError, match="--media-root"):
        resume(sent)


def test_the_input_of_a_foreign_run_is_not_read(sent, home):
    source = {"data": str(home / "passwords.txt"), "predictions": None}
    edited(sent, lambda info: info.update(state="reading", finished=None, parts=[], signatures={}, source=source))
    with pytest.raises(RunFolderError, match=r"passwords\.txt \(its data\)"):
        resume(sent)
    edited(sent, lambda info: info.update(state="scoring", finished=None, rescored_from="s3://bucket/run"))
    with pytest.raises(RunFolderError, match=r"s3://bucket/run .*Start a new run"):
        resume(sent)


def test_metrics_that_read_media_ask_for_their_folder(tmp_path, home):
    rows = [{"id": "1", "image": str(home / "private.png"), "references": ["a"], "generated_answer": "a"}]
    evaluate(rows, metrics=["brightness", "rouge_l"], plugins=[BRIGHTNESS], output=tmp_path / "made")
    sent = received(tmp_path / "made", tmp_path / "sent")
    assert rescore(sent, {"metrics": ["brightness"]}, plugins=[BRIGHTNESS])["brightness"]["n_scored"] == 1  # reused
    edited(sent, lambda info: info["signatures"]["brightness"]["settings"].update(version="0"))
    with pytest.raises(RunFolderError, match=r"brightness must read them\. Name their folder: --media-root DIR"):
        rescore(sent, {"metrics": ["brightness"]}, plugins=[BRIGHTNESS])
    again = rescore(sent, {"metrics": ["brightness"]}, plugins=[BRIGHTNESS], media_roots=[home])
    assert again["brightness"]["n_scored"] == 1


BRIGHTNESS = str(Path(__file__).parents[1] / "run" / "brightness.py")


# links in the viewer


@pytest.mark.parametrize("name", ["results.json", "lint.json", "run.json", "samples", "scores", "state"])
@pytest.mark.parametrize("single", [False, True])
def test_no_link_leads_out_of_the_viewed_folder(tmp_path, name, single):
    evaluate(samples(6), metrics=["rouge_l", "cider"], output=tmp_path / "outside")
    run = received(tmp_path / "outside", tmp_path / "runs" / "a")
    target = run / name
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink()
    target.symlink_to(tmp_path / "outside" / name)
    with client(run if single else run.parent) as browser:
        for route in ("/run/a", "/samples/a", "/sample/a?row=0", "/export/run.csv/a", "/export/samples.csv/a"):
            assert browser.get(route).status_code == 404, route


def test_a_linked_part_is_not_compared(tmp_path):
    evaluate(samples(6), metrics=["rouge_l"], output=tmp_path / "outside")
    for name in ("a", "b"):
        received(tmp_path / "outside", tmp_path / "runs" / name)
    part = tmp_path / "runs" / "a" / "scores" / "part-00000.parquet"
    part.unlink()
    part.symlink_to(tmp_path / "outside" / "scores" / "part-00000.parquet")
    with client(tmp_path / "runs") as browser:
        for route in ("/compare/numbers?run=a&run=b", "/pairs?run=a&run=b", "/run/a"):
            assert browser.get(route).status_code == 404, route


def test_workers_get_no_plugin_of_the_run(made, canary, tmp_path):
    sent = edited(received(made, tmp_path / "sent"), lambda info: info["config"].update(plugins=[str(canary)]))
    plan = rescoring_plan(Run(sent), {"metrics": ["cider"]})
    job = Job.of(Score(RunContext(plan, Run(sent).folder, Run(sent).info)))
    assert b"canary" not in job.config
    named = rescoring_plan(Run(sent), {"metrics": ["cider"]}, [PLUGIN])
    assert named.config.plugins == [str(PLUGIN)]
