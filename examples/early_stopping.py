"""Early stopping in a plain loop: a scikit-learn classifier, stopped by the multi-annotator F1, with its best weights.

    python examples/early_stopping.py

Needs scikit-learn. To use it on your own data, replace the two calls to `rows`.
"""

from __future__ import annotations

from evasion_answers import WAYS, rows
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import SGDClassifier

from multimodal_eval.clarity.early_stopping import EarlyStopping, monitored

EPOCHS = 60

train, dev = rows(99, seed=1), rows(54, seed=2)
words = TfidfVectorizer(ngram_range=(1, 2))
train_features = words.fit_transform([row.answer for row in train])
dev_features = words.transform([row.answer for row in dev])
dev_labels = [row.label for row in dev]
dev_annotators = [row.annotators for row in dev]  # without annotators: None, and the strict F1 is monitored

model = SGDClassifier(loss="log_loss", alpha=1e-5, learning_rate="constant", eta0=0.2, random_state=0)
stopping = EarlyStopping(patience=5)
for epoch in range(1, EPOCHS + 1):
    model.partial_fit(train_features, [row.label for row in train], classes=sorted(WAYS))
    name, value = monitored(model.predict(dev_features).tolist(), dev_labels, dev_annotators)
    best = stopping.update(value, epoch)
    print(f"epoch {epoch:2}  {name} {value:.4f}{'  best so far' if best else ''}")
    if best:
        stopping.remember(model)
    if stopping.should_stop:
        break

model = stopping.restore()
_, value = monitored(model.predict(dev_features).tolist(), dev_labels, dev_annotators)
print(f"stopped after epoch {epoch}; restored the model of epoch {stopping.best_step}: {value:.4f}")
