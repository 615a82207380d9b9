"""Epochs: every sample is asked several times, with other seeds."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.averaging import Averaging
from multimodal_eval.core.config import GenerationConfig, RunConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.records import Entry, Figure
from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.stats.pass_at_k import between_epochs, is_binary, ks_of, pass_at_k

__all__ = ["EPOCH_SD", "seeded", "with_epochs"]

EPOCH_SD = "epoch_sd"  # the part with the standard deviation between epochs, which is not a mean


def seeded(config: RunConfig) -> GenerationConfig | None:
    """The settings of generation. With several epochs, the first one has the seed of the run if none is given."""
    generation = config.generation
    if generation is None or generation.epochs == 1:
        return generation
    if generation.history:
        raise ConfigError("`epochs` and `history` exclude each other: the turns of a dialogue are asked once, in order")
    if generation.parameters.seed is not None:
        return generation
    parameters = msgspec.structs.replace(generation.parameters, seed=config.seed)
    return msgspec.structs.replace(generation, parameters=parameters)


def with_epochs(entry: Entry, values: NDArray[np.float64], averaging: Averaging, config: RunConfig) -> Entry:
    """The entry of a metric with pass@k, if its values are 0 or 1, and with the standard deviation between epochs.

    `values` has one row per sample and epoch; the epochs of a sample follow each other.
    """
    epochs = 1 if config.generation is None else config.generation.epochs
    if epochs == 1 or len(values) % epochs:
        return entry
    table = values.reshape(-1, epochs)
    parts: dict[str, Figure] = {}
    if is_binary(values):
        by_sample = averaging.of(np.arange(0, len(values), epochs))  # the groups of the samples
        for k in ks_of(epochs):
            chances = pass_at_k(table, k)
            kept = np.isfinite(chances)
            parts[f"pass@{k}"] = _separate(by_sample.of(kept)).figure(mean_estimate, Rows(chances[kept]))
    deviation = between_epochs(table)
    if deviation is not None:
        method = f"standard deviation of the means of {epochs} epochs"
        parts[EPOCH_SD] = Figure(value=deviation, stderr=None, low=None, high=None, method=method)
    return msgspec.structs.replace(entry, parts={**entry.parts, **parts})


def _separate(averaging: Averaging) -> Averaging:
    """The averaging without clusters, if each has one row."""
    clusters = averaging.clusters
    if clusters is None or len(np.unique(clusters)) < len(clusters):
        return averaging
    return replace(averaging, clusters=None)
