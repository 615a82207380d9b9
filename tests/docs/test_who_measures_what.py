"""The page "Who measures what" shows the recorded figures, and our side of them is still computed so."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from multimodal_eval.core.errors import UnavailableError
from multimodal_eval.core.rules import rules_of
from tests.golden.load import golden

ROOT = Path(__file__).parents[2]
RESULTS = json.loads((ROOT / "bench" / "results" / "who_measures_what.json").read_text(encoding="utf-8"))
LAUNCH = ROOT / "bench" / "peers" / "launch.py"
tables = import_module("bench.peers.tables")
our_captions = import_module("bench.peers.our_captions")
our_answers = import_module("bench.peers.our_answers")
inputs = import_module("bench.peers.inputs")

FIXTURE = inputs.own_captions(ROOT / "tests" / "golden" / "captions.json.gz")
ROWS = {row["name"]: row for row in RESULTS["fixture"]["rows"] if row.get("differences")}
DATA_NEEDED = ("METEOR", "SPICE")  # metrics whose data are fetched


def test_the_page_has_the_recorded_tables():
    page = (ROOT / "docs" / "who-measures-what.md").read_text(encoding="utf-8")
    assert tables.updated(page, RESULTS) == page


def test_a_page_without_a_marker_is_refused():
    with pytest.raises(ValueError, match="One of them is missing"):
        tables.updated("# Who measures what", RESULTS)


def test_the_fixture_has_as_many_images_as_were_measured():
    assert len(FIXTURE.candidates) == RESULTS["fixture"]["images"] > 200


def test_every_row_is_one_that_its_runner_returns():
    environments, caption_rows = import_module("bench.peers.environments"), import_module("bench.peers.caption_rows")
    runners = {peer.name: peer.runner.read_text(encoding="utf-8") for peer in environments.PEERS}
    assert [row.name for row in caption_rows.ROWS if f'"{row.name}"' not in runners[row.peer]] == []


@pytest.mark.parametrize("name", ROWS)
def test_our_captions_with_one_change_give_the_figures_of_the_peer(name):
    row = ROWS[name]
    try:
        ours = getattr(our_captions, row["recipe"])(FIXTURE)
    except UnavailableError as missing:
        pytest.skip(str(missing))
    compared = [metric for metric in row["ours"] if metric in ours and metric not in DATA_NEEDED]
    assert compared
    for metric in compared:
        assert ours[metric] == pytest.approx(row["ours"][metric], rel=1e-12)
        if row["differences"][metric] <= tables.EQUAL:
            assert ours[metric] == pytest.approx(row["scores"][metric], rel=tables.EQUAL)


def test_the_standard_is_reproduced_in_every_row_where_nothing_is_changed():
    unchanged = [row for row in RESULTS["captions"]["rows"] if row.get("changed") == "nothing"]
    assert len(unchanged) >= 3
    for row in unchanged:
        assert max(row["differences"].values()) <= tables.EQUAL, row["name"]


def short_cases():
    cases = golden("short_answers.json.gz")["cases"] + golden("answer_rules.json.gz")["pope"]
    by_family = {family: [] for family in inputs.FAMILIES.values()}
    for case in cases:
        golds = case["gold"] if isinstance(case["gold"], list) else [case["gold"]]
        by_family[inputs.FAMILIES[case["kind"]]].append({"answer": case["answer"], "golds": golds})
    return by_family


@pytest.mark.parametrize("family", sorted(inputs.FAMILIES.values()))
def test_our_rules_give_the_recorded_scores(family):
    cases = short_cases()[family]
    rows = {row["rule"]: row for row in RESULTS["answers"][family]}
    for rule in rules_of(family):
        if rule not in rows:  # registered by another test
            continue
        figures = our_answers.figures(cases, our_answers.our_verdicts(family, rule, cases))
        assert figures["score"] == pytest.approx(rows[rule]["score"], rel=1e-12), rule
        assert figures["unread"] == rows[rule]["unread"]


def test_a_rule_named_after_a_program_agrees_with_it_in_every_case():
    compared = [row for rows in RESULTS["answers"].values() for row in rows if row.get("nearest") == row["rule"]]
    assert len(compared) >= 10
    assert [row for row in compared if row["equal"] != row["cases"]] == []


def test_the_score_of_a_drawn_letter_is_its_chance():
    case = {"options": {"A": "x", "B": "y", "C": "z", "D": "w"}, "gold": "B"}
    figures = our_answers.figures([case] * 4, ["B", "drawn", None, "A"])
    assert figures == {"score": (1 + 1 / 4) / 4, "unread": 1, "drawn": 1}


def launched(folder, source):
    runner = folder / "runner.py"
    runner.write_text(source, encoding="utf-8")
    command = [sys.executable, str(LAUNCH), str(runner), "captions"]
    done = subprocess.run(command, input='{"candidates": ["a"]}', capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_what_a_peer_prints_is_not_part_of_its_result(tmp_path):
    function = "def captions(data):\n    print('loading')\n    return data['candidates']\n"
    source = f"PACKAGES = ('pytest', 'not-installed')\n{function}"
    versions = {"pytest": pytest.__version__, "not-installed": None}
    assert launched(tmp_path, source) == {"result": ["a"], "versions": versions}


def test_a_peer_that_fails_gives_a_reason_and_no_score(tmp_path):
    source = "PACKAGES = ()\ndef captions(data):\n    raise ValueError('no model\\nmore')\n"
    assert launched(tmp_path, source) == {"error": "ValueError: no model"}
