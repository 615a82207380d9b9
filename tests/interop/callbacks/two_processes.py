"""A validation by two processes of Lightning; writes the values that it logged: python two_processes.py FILE"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import lightning.pytorch as lightning
import torch

from multimodal_eval.interop.callbacks.lightning import lightning_scores

GOLD = ["a dog", "a cat", "a red bird"]
ANSWERS = ["a dog", "no", "no"]


class Module(lightning.LightningModule):  # type: ignore[misc]
    """Answers from a list."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def validation_step(self, batch: Any, index: int) -> dict[str, Any]:
        rows = batch[0].tolist()
        return {"id": rows, "predictions": [ANSWERS[row] for row in rows], "references": [GOLD[row] for row in rows]}


class Kept(lightning.Callback):  # type: ignore[misc]
    """Writes the logged values to a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        assert trainer.world_size == 2
        if trainer.is_global_zero:
            values = {name: float(value) for name, value in trainer.callback_metrics.items()}
            self.file.write_text(json.dumps(values))


if __name__ == "__main__":
    data = torch.utils.data.TensorDataset(torch.arange(3))
    lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp_spawn",
        logger=False,
        enable_progress_bar=False,
        callbacks=[lightning_scores("exact_match", "wer"), Kept(Path(sys.argv[1]))],
    ).validate(Module(), torch.utils.data.DataLoader(data), verbose=False)
