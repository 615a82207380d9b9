"""Early stopping in the Trainer of transformers: a tiny BERT trained from scratch, stopped by the multi-annotator F1.

    pip install 'multimodal-eval[trainer]'
    python examples/early_stopping_trainer.py [FOLDER FOR CHECKPOINTS]

To use it on your own data and model, replace `rows`, `encoded` and `model`; the rest stays the same.
"""

from __future__ import annotations

import sys
import zlib
from tempfile import mkdtemp

import torch
from evasion_answers import WAYS, Row, rows
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

from multimodal_eval.clarity.early_stopping_trainer import trainer_compute_metrics, trainer_early_stopping

LABELS = list(WAYS)
VOCABULARY, LENGTH = 512, 16


def encoded(data: list[Row]) -> list[dict[str, torch.Tensor]]:
    """Map each word to a number by its checksum: enough for an example, without downloads."""
    features = []
    for row in data:
        words = [1 + zlib.crc32(word.strip(",").lower().encode()) % (VOCABULARY - 1) for word in row.answer.split()]
        ids = torch.tensor(words[:LENGTH] + [0] * (LENGTH - len(words)))
        features.append(
            {"input_ids": ids, "attention_mask": (ids > 0).long(), "labels": torch.tensor(LABELS.index(row.label))}
        )
    return features


set_seed(0)
train, dev = rows(99, seed=1), rows(54, seed=2)
shape = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
config = BertConfig(vocab_size=VOCABULARY, max_position_embeddings=LENGTH, num_labels=len(LABELS), **shape)
model = BertForSequenceClassification(config)

stopping = trainer_early_stopping(patience=4)
trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir=sys.argv[1] if len(sys.argv) > 1 else mkdtemp(),
        num_train_epochs=60,
        learning_rate=5e-3,
        per_device_train_batch_size=16,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=1,  # in addition to the best one
        metric_for_best_model="monitored_f1",
        load_best_model_at_end=True,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    ),
    train_dataset=encoded(train),
    eval_dataset=encoded(dev),
    compute_metrics=trainer_compute_metrics(
        LABELS, gold_labels=[row.label for row in dev], annotator_labels=[row.annotators for row in dev]
    ),
    callbacks=[stopping],
)
trainer.train()

best = stopping.stopping
value = trainer.evaluate()["eval_monitored_f1"]
print(f"stopped at step {trainer.state.global_step}; restored the model of step {best.best_step}: {value:.4f}")
