"""A run folder from someone else is only data: no command and no viewer page imports the files it names."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from multimodal_eval import evaluate, rescore, resume
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.cli.main import cli
from multimodal_eval.core import registry
from multimodal_eval.core.errors import RunFolderError, UnavailableError
from tests.edited_runs import rewrite_json
from tests.registry_state import forget_plugins
from tests.report.viewer.viewed import client
from tests.run.caption_samples import samples
from tests.run.stopping_executor import StoppedError, stopping

PLUGIN = Path(__file__).with_name("plugin.py")
MEAN, RATIO = "slow_words", "corpus_precision"  # metrics of this plug-in: a mean, and a ratio of sums


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """A file that exists if the hostile plug-in was imported."""
    return tmp_path / "imported"


@pytest.fixture
def runs(tmp_path: Path, marker: Path) -> list[str]:
    """Two runs whose run.json names a hostile file as their plug-in."""
    hostile = tmp_path / "hostile.py"
    hostile.write_text(f"{PLUGIN.read_text()}\nopen({str(marker)!r}, 'w').close()\n")
    folders = [tmp_path / "runs" / name for name in ("a", "b")]
    for folder in folders:
        evaluate(samples(), metrics=["cider", MEAN, RATIO], plugins=[str(PLUGIN)], output=folder)
        edit(folder, lambda info: info["config"].update(plugins=[str(hostile)]))
    forget_plugins()
    return [str(folder) for folder in folders]


def edit(folder: Path, change) -> None:
    rewrite_json(folder / "run.json", change)


def mmeval(*arguments: str):
    return CliRunner().invoke(cli, [*arguments])


def test_the_hostile_file_leaves_its_mark(runs, marker):
    """The other tests check for this file, which an import of the plug-in does create."""
    registry.load_plugin(marker.with_name("hostile.py"))
    assert marker.exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["compare", "A", "B", "--allow-partial", "--metrics", "cider,slow_words"], 0),
        (["compare", "A", "B", "--allow-partial"], 1),  # a ratio needs its metric
        (["report", "A", "B", "-o", "OUT/report.html"], 0),
        (["report", "A"], 0),
        (["rescore", "A", "--config", "OUT/config.yaml", "-o", "OUT/new"], 1),
        (["score", "--resume", "A"], 1),
        (["lint", "A"], 0),
        (["ls", "runs", "OUT/runs"], 0),
        (["meta", "A", "--human", "number", "--metrics", "cider"], 1),  # it has no such column
        (["compare", "A", "B", "--vary-weights"], 1),  # they have no composite
    ],
)
def test_no_command_imports_the_plugins_of_a_run(runs, marker, tmp_path, arguments, code):
    (tmp_path / "config.yaml").write_text("metrics: [cider, slow_words]\n")
    places = {"A": runs[0], "B": runs[1]}
    result = mmeval(*(places.get(text, text.replace("OUT", str(tmp_path))) for text in arguments))
    assert result.exit_code == code, result.output + str(result.exception)
    assert not marker.exists()


@pytest.mark.parametrize(
    "address",
    [
        "/",
        "/runs.csv",
        "/run/a",
        "/samples/a",
        "/sample/a?row=0",
        "/export/run.csv/a",
        "/export/samples.csv/a",
        "/compare?run=a&run=b",
        "/compare/numbers?run=a&run=b",
        "/compare/numbers.csv?run=a&run=b",
        "/pairs?run=a&run=b",
        "/pairs.csv?run=a&run=b",
    ],
)
def test_no_viewer_page_imports_the_plugins_of_a_run(runs, marker, address):
    with client(Path(runs[0]).parent) as browser:
        assert browser.get(address).status_code == 200
    assert not marker.exists()


def test_the_viewer_compares_metrics_from_stored_scores(runs, marker):
    with client(Path(runs[0]).parent) as browser:
        page = browser.get("/compare/numbers?run=a&run=b")
    assert page.status_code == 200
    assert MEAN in page.text
    assert not marker.exists()


def test_a_mean_is_compared_from_its_stored_values(runs):
    (number,) = compare_runs(runs, metrics=[MEAN], allow_partial=True).numbers
    registry.load_plugin(PLUGIN)
    (with_metric,) = compare_runs(runs, metrics=[MEAN], allow_partial=True).numbers
    assert number == with_metric


def test_another_aggregate_needs_the_plugin_on_the_command_line(runs):
    refused = mmeval("compare", *runs, "--allow-partial", "--metrics", RATIO)
    assert "--plugin" in str(refused.exception)
    compared = mmeval("compare", *runs, "--allow-partial", "--metrics", RATIO, "--plugin", str(PLUGIN))
    assert compared.exit_code == 0, compared.output


def test_another_metric_with_the_same_name_is_not_used(runs, tmp_path):
    other = tmp_path / "other.py"
    other.write_text(PLUGIN.read_text().replace("known = {word", "known = {'x'} | {word"))
    registry.load_plugin(other)
    with pytest.raises(UnavailableError, match="defined differently"):
        compare_runs(runs, metrics=[RATIO], allow_partial=True)


@pytest.fixture
def interrupted(tmp_path: Path, marker: Path, runs: list[str]) -> Path:
    folder = tmp_path / "interrupted"
    with pytest.raises(StoppedError):
        evaluate(samples(), metrics=[MEAN], plugins=[str(PLUGIN)], output=folder, engine=stopping(0))
    edit(folder, lambda info: info["config"].update(plugins=[str(marker.with_name("hostile.py"))]))
    forget_plugins()
    return folder


def test_resume_asks_for_the_plugin_again(interrupted, marker):
    with pytest.raises(RunFolderError, match=r"name them again: --plugin .*hostile\.py"):
        resume(interrupted)
    assert not marker.exists()
    result = mmeval("score", "--resume", str(interrupted), "--plugin", str(PLUGIN))
    assert result.exit_code == 0, result.output + str(result.exception)
    assert not marker.exists()


def test_resume_refuses_another_definition(interrupted, tmp_path):
    other = tmp_path / "other.py"
    other.write_text(PLUGIN.read_text().replace("time.sleep(pause)\n", "time.sleep(pause / 2)\n"))
    with pytest.raises(RunFolderError, match=r"no given file has its content \(SHA-256"):
        resume(interrupted, plugins=[other])
    edit(interrupted, lambda info: info.pop("plugins"))  # an older version stored no digests of files
    with pytest.raises(RunFolderError, match="would continue with"):
        resume(interrupted, plugins=[other])


def test_rescore_asks_for_the_plugin_again(runs, marker):
    with pytest.raises(RunFolderError, match="name them again"):
        rescore(runs[0], {"metrics": ["cider", MEAN]})
    assert rescore(runs[0], {"metrics": ["cider", MEAN]}, plugins=[PLUGIN]).metrics == ["cider", MEAN]
    forget_plugins()
    assert rescore(runs[0], {"metrics": [MEAN], "plugins": [str(PLUGIN)]}).metrics == [MEAN]
    assert not marker.exists()
