"""Scores logged from a training loop, without any tracker installed; tests/interop/trackers has the real ones."""

from __future__ import annotations

import pytest

from multimodal_eval import Accumulator, compute, evaluate
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.interop.callbacks.log_scores import active_trackers, log_scores
from multimodal_eval.interop.trackers.content import flat_values, run_values

ROWS = {"predictions": ["a dog", "cat", "x"], "references": ["a dog", "a cat", "x"]}


@pytest.fixture
def scores():
    return compute(**ROWS, metrics=["exact_match"])


class Writer:
    """As TensorBoard's."""

    def __init__(self):
        self.scalars = []

    def add_scalar(self, name, value, step=None):
        self.scalars.append((name, value, step))


class Logger:
    """As one of Lightning."""

    def __init__(self):
        self.logged = []

    def log_metrics(self, values, step=None):
        self.logged.append((values, step))


def test_a_function_gets_values_and_step(scores):
    logged = []

    def keep(values, step):
        logged.append((values, step))

    assert log_scores(scores, step=3, prefix="val_", to=keep) == ("keep",)
    ((values, step),) = logged
    assert step == 3
    assert values["val_exact_match"] == 2 / 3
    assert values["val_exact_match_low"] == scores["exact_match"].low
    assert values["val_exact_match_high"] == scores["exact_match"].high
    assert values["val_exact_match_coverage"] == 1


def test_a_writer_of_tensorboard(scores):
    writer = Writer()
    assert log_scores(scores, step=3, to=writer) == ("Writer",)
    assert writer.scalars == [(name, value, 3) for name, value in flat_values(scores).items()]


def test_a_logger_of_lightning(scores):
    logger = Logger()
    log_scores(scores, to=logger)
    assert logger.logged == [(flat_values(scores), None)]


def test_a_run():
    logger = Logger()
    rows = [{"references": [gold], "generated_answer": text} for text, gold in zip(*ROWS.values(), strict=True)]
    run = evaluate(rows, metrics=["wer"], progress=False)
    log_scores(run, prefix="test/", to=logger)
    assert logger.logged == [({f"test/{name}": value for name, value in run_values(run).items()}, None)]


def test_no_tracker_is_active(scores):
    assert active_trackers() == {}
    with pytest.warns(UserWarning, match="no tracker is active"):
        assert log_scores(scores) == ()


def test_wrong_targets(scores):
    with pytest.raises(UnknownNameError, match="Did you mean 'wandb'"):
        log_scores(scores, to="wanb")
    with pytest.raises(ConfigError, match="wandb has no active run"):
        log_scores(scores, to=["wandb"])
    with pytest.raises(ConfigError, match="`to` must be"):
        log_scores(scores, to=3)
    with pytest.raises(ConfigError, match="scores must be a mapping"):
        log_scores(Accumulator("exact_match"), to=Logger())
