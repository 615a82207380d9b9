"""Early stopping in real fits of Lightning: a linear classifier over words. Needs the extra [lightning]."""

from __future__ import annotations

import runpy
import zlib
from math import nan
from pathlib import Path

import numpy as np
import pytest

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.interop.early_stopping import MONITORED, lightning_early_stopping, monitored

torch = pytest.importorskip("torch", reason="the extra [lightning] is not installed")
lightning = pytest.importorskip("lightning.pytorch", reason="the extra [lightning] is not installed")
pytestmark = pytest.mark.torch

# Ignore Lightning's own warnings; ours are matched by their text.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",
    "ignore::FutureWarning",
    "ignore:The '.*_dataloader'",
    "ignore:The dirpath has changed",
)

ANSWERS = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "evasion_answers.py"))
LABELS = list(ANSWERS["WAYS"])
TRAIN, DEV = ANSWERS["rows"](99, seed=1), ANSWERS["rows"](54, seed=2)


def loader(rows):
    data = torch.zeros(len(rows), 256)
    for index, row in enumerate(rows):
        for word in row.answer.split():
            data[index, zlib.crc32(word.strip(",").lower().encode()) % 256] = 1
    labels = torch.tensor([LABELS.index(row.label) for row in rows])
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data, labels), batch_size=33)


class Classifier(lightning.LightningModule):  # type: ignore[misc, name-defined]
    def __init__(self, name=MONITORED, value=None):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(256, 9)
        self.name, self.value, self.predicted, self.history = name, value, [], []

    def training_step(self, batch, index):
        return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])

    def validation_step(self, batch, index):
        self.predicted += self.layer(batch[0]).argmax(-1).tolist()

    def on_validation_epoch_end(self):
        predicted, self.predicted = self.predicted, []
        if self.trainer.sanity_checking:  # only some of the rows
            return
        _, value = monitored([LABELS[index] for index in predicted], None, [row.annotators for row in DEV])
        self.history.append(value if self.value is None else self.value)
        self.log(self.name, self.history[-1])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.05)


def trainer_with(callback, folder, **settings):
    silent = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "log_every_n_steps": 1}
    return lightning.Trainer(
        default_root_dir=folder, accelerator="cpu", callbacks=callback, **{"max_epochs": 60, **silent, **settings}
    )


def fit(trainer, model, **settings):
    trainer.fit(model, loader(TRAIN), loader(DEV), **settings)


def test_a_fit_stops_and_restores_the_best_weights(tmp_path):
    callback, model = lightning_early_stopping(patience=4), Classifier()
    trainer = trainer_with([callback], tmp_path)
    fit(trainer, model)
    values, stopping = model.history, callback.stopping
    best = int(np.argmax(values))
    assert len(values) == best + 1 + 4 < 60
    assert values[-1] < values[best]
    assert stopping.best_step == 3 * (best + 1)  # three batches per epoch
    trainer.validate(model, loader(DEV), verbose=False)
    assert model.history[-1] == values[best]
    assert stopping.misses == 4  # a validation after the fit does not count


def test_nan_is_a_miss(tmp_path):
    callback = lightning_early_stopping(patience=2)
    with pytest.warns(UserWarning, match="is nan and counts as no improvement"):
        fit(trainer_with([callback], tmp_path), Classifier(value=nan))
    assert (callback.stopping.non_finite, callback.stopping.best_value) == (2, None)


def test_a_resumed_fit_restores_the_best_of_both_parts(tmp_path):
    whole, model = lightning_early_stopping(patience=4), Classifier()
    fit(trainer_with([whole], tmp_path / "whole"), model)
    epochs = len(model.history)
    every = lightning.callbacks.ModelCheckpoint(dirpath=tmp_path / "all", filename="{epoch}", save_top_k=-1)
    fit(trainer_with([lightning_early_stopping(patience=4), every], tmp_path), Classifier())
    resumed, again = lightning_early_stopping(patience=4), Classifier()
    before_the_end = tmp_path / "all" / f"epoch={epochs - 2}.ckpt"  # epochs count from 0; the best one is much earlier
    fit(trainer_with([resumed], tmp_path / "again"), again, ckpt_path=str(before_the_end))
    assert len(again.history) == 1
    assert resumed.stopping.state_dict() == whole.stopping.state_dict()
    assert torch.equal(again.layer.weight, model.layer.weight)


def test_a_value_that_is_not_logged_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"does not log 'monitored_f1' in its validation\. Known: other"):
        fit(trainer_with([lightning_early_stopping()], tmp_path), Classifier(name="other"))
