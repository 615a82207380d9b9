"""Early stopping by hand, against a naive version, and in real training of a scikit-learn classifier."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import SGDClassifier

import multimodal_eval
from multimodal_eval.contests.clarity.scores import compute_evasion_f1_multiannotator, compute_evasion_f1_strict
from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.interop.early_stopping import EarlyStopping, monitored

EXAMPLES = Path(__file__).parents[2] / "examples"
rows = runpy.run_path(str(EXAMPLES / "evasion_answers.py"))["rows"]


def follow(stopping, values):
    """The step, counted from 1, at which the values stop the training; None if they do not."""
    for step, value in enumerate(values, start=1):
        stopping.update(value, step)
        if stopping.should_stop:
            return step
    return None


def test_patience_counts_misses_in_a_row():
    stopping = EarlyStopping(patience=2)
    assert [stopping.update(value, step) for step, value in enumerate([0.5, 0.4, 0.6, 0.6], start=1)] == [
        True,
        False,
        True,
        False,  # the same value again is not an improvement
    ]
    assert (stopping.best_value, stopping.best_step, stopping.misses) == (0.6, 3, 1)
    assert not stopping.should_stop
    stopping.update(0.1, 5)
    assert stopping.should_stop
    assert stopping.best_step == 3


def test_a_loss_improves_downwards():
    stopping = EarlyStopping(patience=2, mode="min")
    assert follow(stopping, [3.0, 2.0, 2.5, 2.0]) == 4
    assert (stopping.best_value, stopping.best_step) == (2.0, 2)


def test_small_steps_add_up_to_a_real_improvement():
    # From 0.50: +0.04 and +0.08 are within 0.10, two misses of three; +0.12 is not, and resets.
    stopping = EarlyStopping(patience=3, min_delta=0.1)
    assert follow(stopping, [0.50, 0.54, 0.58]) is None
    assert stopping.misses == 2
    assert stopping.update(0.62, 4)
    assert stopping.misses == 0


def test_a_small_step_does_not_reset_the_misses_but_is_the_best():
    stopping = EarlyStopping(patience=2, min_delta=0.1)
    assert follow(stopping, [0.50, 0.54, 0.53]) == 3
    assert (stopping.best_value, stopping.best_step) == (0.54, 2)


@pytest.mark.parametrize("value", [nan, inf, -inf, np.float32("nan")])
@pytest.mark.parametrize("mode", ["max", "min"])
def test_a_value_that_is_not_finite_is_a_miss_with_a_warning(value, mode):
    stopping = EarlyStopping(patience=2, mode=mode)
    with pytest.warns(UserWarning, match=r"at step 1 is .* and counts as no improvement \(1 of 2\)"):
        assert not stopping.update(value, 1)
    assert stopping.best_value is None
    assert stopping.update(0.5, 2)
    with pytest.warns(UserWarning, match="and counts as no improvement"):
        stopping.update(value, 3)
    assert (stopping.best_value, stopping.best_step, stopping.misses, stopping.non_finite) == (0.5, 2, 1, 2)
    with pytest.warns(UserWarning, match="and counts as no improvement"):
        stopping.update(value, 4)
    assert stopping.should_stop


@pytest.mark.parametrize("value", ["0.5", True, None, [0.5]])
def test_a_value_that_is_not_a_number_is_refused(value):
    with pytest.raises(ConfigError, match="needs a number at step 7"):
        EarlyStopping().update(value, 7)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"patience": 0}, "patience"),
        ({"patience": 1.5}, "patience"),
        ({"patience": True}, "patience"),
        ({"min_delta": -0.1}, "min_delta"),
        ({"min_delta": nan}, "min_delta"),
        ({"min_delta": "0"}, "min_delta"),
        ({"mode": "auto"}, "mode"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings, name):
    with pytest.raises(ConfigError, match=f"`{name}` must be"):
        EarlyStopping(**settings)


def test_remember_and_restore_copy_the_state():
    stopping = EarlyStopping()
    weights = {"w": np.array([1.0, 2.0])}
    stopping.update(0.5, 1)
    stopping.remember(weights)
    weights["w"] += 10  # training continues in place
    stopping.restore()["w"] += 100
    assert stopping.restore()["w"].tolist() == [1.0, 2.0]


def test_only_the_state_of_the_best_value_is_remembered_and_restored():
    stopping = EarlyStopping()
    with pytest.raises(ConfigError, match="no value was finite"):
        stopping.restore()
    stopping.update(0.5, 1)
    stopping.remember("first")
    stopping.update(0.4, 2)
    with pytest.raises(ConfigError, match="only if `update` returned True"):
        stopping.remember("second")
    assert stopping.restore() == "first"
    stopping.update(0.6, 3)  # a new best whose state was not remembered
    with pytest.raises(ConfigError, match="that of step 3"):
        stopping.restore()


VALUES = st.lists(st.integers(0, 8).map(lambda eighths: eighths / 8) | st.just(nan), min_size=1, max_size=30)


@pytest.mark.filterwarnings("ignore:the monitored value")
@given(VALUES, st.integers(1, 4), st.integers(0, 3), st.sampled_from(["max", "min"]))
def test_a_naive_version_agrees(values, patience, eighths, mode):
    sign = 1 if mode == "max" else -1
    reference, misses, stop = None, 0, None
    for step, value in enumerate(values, start=1):
        good = value == value and (reference is None or sign * (value - reference) > eighths / 8)
        reference, misses = (value, 0) if good else (reference, misses + 1)
        if misses == patience:
            stop = step
            break
    seen = [(sign * value, -step) for step, value in enumerate(values[:stop], start=1) if value == value]
    stopping = EarlyStopping(patience, eighths / 8, mode)
    assert follow(stopping, values) == stop
    if seen:
        assert (stopping.best_value, stopping.best_step) == (sign * max(seen)[0], -max(seen)[1])
    else:
        assert stopping.best_value is stopping.best_step is None


@pytest.mark.filterwarnings("ignore:the monitored value")
@given(VALUES, st.integers(0, 30), st.integers(0, 3))
def test_resuming_changes_nothing(values, cut, eighths):
    whole, first, second = (EarlyStopping(3, eighths / 8) for _ in range(3))
    for step, value in enumerate(values):
        whole.update(value, step)
        (first if step < cut else second).update(value, step)
        if step == cut - 1:
            second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    last = second if len(values) >= cut else first
    assert last.state_dict() == whole.state_dict()
    assert last.should_stop == whole.should_stop


def test_a_resumed_object_has_the_given_best_state():
    stopping, resumed, bare = EarlyStopping(), EarlyStopping(), EarlyStopping()
    stopping.update(0.5, 1)
    stopping.remember([1, 2])
    resumed.load_state_dict(stopping.state_dict(), stopping.restore())
    assert resumed.restore() == [1, 2]
    bare.update(0.1, 1)  # earlier values are forgotten
    bare.load_state_dict(stopping.state_dict())
    with pytest.raises(ConfigError, match="that of step 1"):
        bare.restore()
    with pytest.raises(ConfigError, match="Call `remember` only if"):
        bare.remember([3])


def test_a_state_of_something_else_is_refused():
    with pytest.raises(ConfigError, match="mode='max', but this object has 'min'"):
        EarlyStopping(mode="min").load_state_dict(EarlyStopping().state_dict())
    with pytest.raises(ConfigError, match="misses, non_finite, reference missing"):
        EarlyStopping().load_state_dict({"mode": "max", "best_value": 1.0, "best_step": 1})


PREDICTED = ["Explicit", "Dodging", "General"]
GOLD = ["Explicit", "General", "General"]
ANNOTATORS = [["Explicit", "", None], ["Dodging", "General", ""], ["", "", ""]]


def test_annotator_labels_are_monitored():
    # Rows 1 and 2 agree with an annotator, row 3 has none: F1 is 1 for two of nine classes.
    assert monitored(PREDICTED, GOLD, ANNOTATORS) == ("evasion_f1_multiannotator", pytest.approx(2 / 9))
    assert (
        monitored(PREDICTED, None, ANNOTATORS)[1]
        == compute_evasion_f1_multiannotator(PREDICTED, ANNOTATORS)["macro_f1"]
    )


@pytest.mark.parametrize("annotators", [None, [], [["", None, nan]] * 3, [["  "], [], [""]]])
def test_without_annotator_labels_the_strict_f1_is_monitored(annotators):
    # Explicit 1, Dodging 0, General 2 * 1 / (2 + 1).
    assert monitored(PREDICTED, GOLD, annotators) == ("evasion_f1_strict", pytest.approx((1 + 2 / 3) / 9))
    assert monitored(PREDICTED, GOLD)[1] == compute_evasion_f1_strict(PREDICTED, GOLD)["macro_f1"]


def test_input_without_labels_is_refused():
    with pytest.raises(ConfigError, match="no gold labels and no annotators"):
        monitored(PREDICTED)
    with pytest.raises(ConfigError, match="no labels from the annotators"):
        monitored(PREDICTED, None, [[""], [None], []])
    with pytest.raises(InputError, match="NO_REFERENCE"):
        monitored(PREDICTED, ["", None, " "])
    with pytest.raises(InputError, match=r"NO_REFERENCE.*Contradictory"):
        monitored(PREDICTED, GOLD, [["2.5 Contradictory"], [""], []])
    for short in ({"gold_labels": GOLD[:2]}, {"annotator_labels": ANNOTATORS[:2]}):
        with pytest.raises(InputError, match="LENGTH"):
            monitored(PREDICTED, **short)


@pytest.fixture(scope="module")
def task():
    train, dev = rows(99, seed=1), rows(54, seed=2)
    words = TfidfVectorizer(ngram_range=(1, 2))
    features = words.fit_transform([row.answer for row in train]), words.transform([row.answer for row in dev])
    return (*features, [row.label for row in train], dev)


def classifier():
    return SGDClassifier(loss="log_loss", alpha=1e-5, learning_rate="constant", eta0=0.2, random_state=0)


@pytest.mark.parametrize("annotated", [True, False])
def test_training_stops_and_restores_the_best_weights(task, annotated):
    train, dev, labels, dev_rows = task
    classes = sorted(set(labels))
    golds = [row.label for row in dev_rows]
    annotators = [row.annotators if annotated else ("", "", "") for row in dev_rows]
    model, stopping, history = classifier(), EarlyStopping(patience=5), []
    for epoch in range(1, 61):
        model.partial_fit(train, labels, classes=classes)
        name, value = monitored(model.predict(dev).tolist(), golds, annotators)
        history.append(value)
        if stopping.update(value, epoch):
            stopping.remember(model)
        if stopping.should_stop:
            break
    best = stopping.restore()

    assert name == ("evasion_f1_multiannotator" if annotated else "evasion_f1_strict")
    assert len(history) == stopping.best_step + 5 < 60
    assert 1 < stopping.best_step == 1 + int(np.argmax(history))
    assert history[-1] < stopping.best_value == max(history)
    assert monitored(best.predict(dev).tolist(), golds, annotators)[1] == stopping.best_value
    # Training for exactly that many epochs gives the same weights; the stopped training had continued to others.
    again = classifier()
    for _ in range(stopping.best_step):
        again.partial_fit(train, labels, classes=classes)
    assert np.array_equal(best.coef_, again.coef_)
    assert not np.array_equal(best.coef_, model.coef_)


def test_the_example_prints_what_the_guide_shows():
    source = str(Path(multimodal_eval.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source}
    command = [sys.executable, "-W", "error", str(EXAMPLES / "early_stopping.py")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    guide = (EXAMPLES.parent / "docs" / "early-stopping.md").read_text(encoding="utf-8")
    assert f"$ python examples/early_stopping.py\n{printed}```\n" in guide
    assert re.search(r"stopped after epoch (\d+); restored the model of epoch (\d+)", printed).groups() == ("9", "4")  # type: ignore[union-attr]


def test_the_adapters_import_nothing_heavy():
    code = (
        "import sys, multimodal_eval.interop.early_stopping, multimodal_eval.interop.early_stopping;"
        "print([name for name in ('torch', 'transformers', 'lightning') if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(multimodal_eval.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "[]"
