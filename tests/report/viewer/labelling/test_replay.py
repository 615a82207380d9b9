"""Whatever annotators do, in whatever order: the file says the same as a model that only remembers the last action."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from multimodal_eval.core.errors import InputError
from multimodal_eval.data.labels.human import last_labels, read_labels
from multimodal_eval.report.viewer.labelling.labels import State, StoredLabels
from multimodal_eval.report.viewer.labelling.queue import LabelOptions
from multimodal_eval.report.viewer.labelling.session import LabelSession, open_session
from multimodal_eval.report.viewer.runs import RunsFolder
from tests.report.viewer.labelling.annotators import make_labelled_runs

PEOPLE = ("ann", "bob")
ACTIONS = st.one_of(
    st.tuples(st.sampled_from(PEOPLE), st.just("label"), st.integers(0, 5), st.integers(1, 5)),
    st.tuples(st.sampled_from(PEOPLE), st.just("skip"), st.integers(0, 5), st.just(0)),
    st.tuples(st.sampled_from(PEOPLE), st.just("undo"), st.just(0), st.just(0)),
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replayed") / "runs"
    make_labelled_runs(folder, 4)
    return folder


def sessions(runs: Path, file: Path) -> list[LabelSession]:
    """Two processes with the same file."""
    return [open_session(RunsFolder(runs), LabelOptions(file=file, scale="1-5")) for _ in PEOPLE]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ACTIONS, max_size=25))
def test_any_interleaving_replays_to_the_same_state(runs: Path, actions):
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "labels.jsonl"
        by_person = dict(zip(PEOPLE, sessions(runs, file), strict=True))
        model: dict[str, dict[int, int | None]] = {name: {} for name in PEOPLE}  # item -> label, None: skipped
        for person, action, item, value in actions:
            session, mine = by_person[person], model[person]
            assert session.task is not None
            if action == "undo":
                last = session.last(person)
                assert (None if last is None else last[0]) == (list(mine)[-1] if mine else None)
                if last is not None:
                    session.withdraw(session.task.queue.items[last[0]], person, "undo")
                    mine.popitem()
                continue
            if action == "label" and mine.get(item) == value:
                session.label(session.task.queue.items[item], person, value, "")  # the same again: no new record
                continue
            mine.pop(item, None)
            mine[item] = value if action == "label" else None
            if action == "label":
                session.label(session.task.queue.items[item], person, value, "")
            else:
                session.withdraw(session.task.queue.items[item], person, "skip")
        _compare(by_person, model, file)


def _compare(by_person: dict[str, LabelSession], model: dict[str, dict[int, int | None]], file: Path) -> None:
    items = by_person["ann"].task.queue.items  # type: ignore[union-attr]
    wanted = {
        person: [(items[place].unit, label) for place, label in mine.items()] for person, mine in model.items() if mine
    }
    fresh = State()
    fresh.apply(file.read_bytes().splitlines() if file.exists() else [])
    for state in (
        by_person["ann"].labels.all(),
        by_person["bob"].labels.all(),
        StoredLabels.at(file).all(),
        fresh.by_annotator,
    ):
        read = {
            person: [(unit, entry.label) for unit, entry in entries.items()]
            for person, entries in state.items()
            if entries
        }
        assert read == wanted
    labels = {(person, unit, label) for person, pairs in wanted.items() for unit, label in pairs if label is not None}
    try:
        counted = last_labels(read_labels(file)) if file.exists() else []
    except InputError:  # no label at all
        counted = []
    assert {(each.annotator, each.unit, each.label) for each in counted} == labels
    progress = by_person["ann"].progress("ann")
    assert progress.labelled == sum(label is not None for label in model["ann"].values())
    assert progress.skipped == sum(label is None for label in model["ann"].values())


def test_lines_of_other_programs_do_not_disturb(runs: Path, tmp_path: Path):
    file = tmp_path / "labels.jsonl"
    lines = [
        '{"id": 7, "label": true, "annotator": "ann", "other": [1]}',
        "not json",
        "[]",
        '{"label": 3}',
        '{"id": "s0", "label": null, "human_weight": 0.5}',
        "",
        '{"id": "s0", "label": " ", "annotator": "ann", "run": "parrot"}',
        "\ufeff{}",
        '{"id": "' + "[" * 5_000,
    ]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (session, _) = sessions(runs, file)
    assert session.labels.all() == {
        "ann": {(None, None, None, "7"): session.labels.entries("ann")[None, None, None, "7"]}
    }
    assert session.labels.unreadable == 5
    assert session.progress("ann").done == 0
    with pytest.raises(InputError, match=r"labels\.jsonl:2"):
        read_labels(file)


def test_a_file_that_was_cut_or_replaced_is_read_again(runs: Path, tmp_path: Path):
    file = tmp_path / "labels.jsonl"
    first, second = sessions(runs, file)
    assert first.task is not None
    for item in first.task.queue.items[:3]:
        first.label(item, "ann", 4, "")
    assert second.progress("ann").labelled == 3
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0])
    assert first.progress("ann").labelled == second.progress("ann").labelled == 1
    file.unlink()
    assert first.progress("ann").labelled == 0
    first.label(first.task.queue.items[0], "ann", 2, "")
    assert second.progress("ann").labelled == 1
