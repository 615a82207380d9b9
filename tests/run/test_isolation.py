"""Crash recovery: a sample that crashes every process is an error, and all other samples are scored."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from multimodal_eval import evaluate, resume
from multimodal_eval.core.errors import RunFolderError
from tests.parts import set_limit
from tests.run.local_runs import CRASHED_STATUS, CRASHING, content, run, samples, statuses

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("many_parts", "nothing_is_left_running")]


def test_a_crash_in_a_process_with_threads_changes_nothing(tmp_path):
    fuse = tmp_path / "fuse"
    options = {"native_killed_once": {"fuse": str(fuse)}}
    data = samples(64, s17="kill")
    run(tmp_path / "whole", 1, ["native_killed_once"], data=data, options=options)
    fuse.touch()
    run(tmp_path / "killed", 8, ["native_killed_once"], data=data, options=options)
    assert not fuse.exists()
    assert content(tmp_path / "killed") == content(tmp_path / "whole")


def test_a_crashing_sample_is_isolated_in_a_process_with_threads(tmp_path):
    result = run(tmp_path / "run", 8, ["native_exits", "bleu"], data=samples(64, s17="please exit"))
    assert statuses(result, "native_exits")["s17"] == CRASHED_STATUS
    assert result["native_exits"]["unscored"] == {"error": 1, "missing_input": 10}
    assert result["bleu"]["unscored"] == {"missing_input": 10}


def test_crashing_samples_are_errors_and_the_others_are_scored(tmp_path, small_parts):
    bad = {"s0": "exit", "s1": "please exit", "s9": "the exit"}  # the first sample; two in one part; a whole part
    result = run(tmp_path / "two", 2, ["exits", "cider"], data=samples(10, **bad))
    missing = ("missing_input", "no generated_answer")
    assert result.info.parts == [3, 3, 3, 1]
    assert statuses(result, "exits") == {
        f"s{number}": CRASHED_STATUS if f"s{number}" in bad else missing if number == 7 else ("ok", None)
        for number in range(10)
    }
    assert statuses(result, "cider") == {f"s{number}": missing if number == 7 else ("ok", None) for number in range(10)}
    assert result["exits"]["unscored"] == {"error": 3, "missing_input": 1}
    assert not (tmp_path / "two" / "scratch").exists()
    assert (tmp_path / "two" / "lint.json").exists()
    run(tmp_path / "three", 3, ["exits", "cider"], data=samples(10, **bad))
    assert content(tmp_path / "three") == content(tmp_path / "two")


def test_a_process_killed_once_changes_nothing(tmp_path):
    fuse = tmp_path / "fuse"
    options = {"killed_once": {"fuse": str(fuse)}}
    data = samples(29, s17="kill")
    run(tmp_path / "whole", 1, ["killed_once", "rarity"], data=data, options=options)
    fuse.touch()
    run(tmp_path / "killed", 2, ["killed_once", "rarity"], data=data, options=options)
    assert not fuse.exists()
    assert content(tmp_path / "killed") == content(tmp_path / "whole")


def test_a_process_killed_from_outside_changes_nothing(tmp_path):
    options = {"slow_words": {"pause": 0.02}}
    killed = []

    def kill(stage, done, total):
        if stage == "scoring" and done > 20 and not killed:
            killed.append(multiprocessing.active_children()[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    run(tmp_path / "killed", 2, ["slow_words"], options=options, progress=kill)
    assert killed
    assert not list(tmp_path.rglob("*.partial"))
    run(tmp_path / "whole", 1, ["slow_words"], options=options)
    assert content(tmp_path / "killed") == content(tmp_path / "whole")


def test_a_crash_that_no_single_sample_causes_is_an_error(tmp_path, small_parts):
    data = samples(7, s0="kill", s1="kill")
    with pytest.raises(RunFolderError, match=r"part 0 cannot be scored.*no single sample of it causes the crash"):
        run(tmp_path / "run", 2, ["killed_by_two"], data=data)


def test_too_many_crashing_samples_are_an_error_and_a_changed_plugin_is_refused(tmp_path, monkeypatch, small_parts):
    set_limit(monkeypatch, "crashing", 1)
    plugin = tmp_path / "broken.py"
    broken = Path(CRASHING).read_text()
    plugin.write_text(broken)
    data = samples(9, s3="kill", s4="kill", s5="kill")
    for name in ("killed", "killed_undeclared"):
        plugin.write_text(broken)
        with pytest.raises(RunFolderError, match=rf"part 1: over 1 samples .* with {name}\. .*fix it"):
            evaluate(data, metrics=[name], plugins=[str(plugin)], output=tmp_path / name, workers=2)
        plugin.write_text(broken.replace("os.kill(", "print("))
        with pytest.raises(RunFolderError, match="Name the file as it was, or start a new run"):
            resume(tmp_path / name, plugins=[plugin])


def test_a_crash_while_fitting_is_an_error(tmp_path):
    plugin = tmp_path / "corpus.py"
    plugin.write_text(
        "import os\nfrom multimodal_eval import metric\n"
        "def corpus(samples):\n    os._exit(1)\n"
        "@metric('crashing', version='1', corpus=corpus)\ndef crashing(sample, corpus=None):\n    return 1.0\n"
    )
    with pytest.raises(RunFolderError, match="a process crashed while gathering the corpus statistics"):
        evaluate(samples(29), metrics=["crashing"], plugins=[str(plugin)], output=tmp_path / "run", workers=2)
    assert not (tmp_path / "run").exists()
