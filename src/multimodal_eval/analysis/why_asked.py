"""What a model answers if it is asked again: how much of a difference comes from the prompt, and how much is noise.

Between A's stored answer to a sample and B's, there are further ones: to A's request again, to B's prompt with A's
parameters, to B's request. Each step from one answer to the next belongs to a part. Samples are drawn within strata of
equal scores in A and in B, and those that were not drawn have the mean steps of their stratum, so that the steps add up
to the whole difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.why_pairs import Key, Mask, Vector

__all__ = ["Asked", "drawn_rows"]

Codes = NDArray[np.int64]
Steps = NDArray[np.float64]
_MOST_STRATA = 12  # of pairs of scores; more are divided by the sign of their difference


@dataclass(frozen=True)
class Asked:
    """The samples that could be asked about, those that were, and the part of each step between two answers."""

    rows: Codes
    is_asked: Mask
    step_keys: Sequence[Key]

    @property
    def keys(self) -> list[Key]:
        """The parts of the steps; the part of the last step takes what the others leave."""
        return [*(key for key in dict.fromkeys(self.step_keys) if key != self.step_keys[-1]), self.step_keys[-1]]

    def steps(self, path: Steps) -> tuple[Steps, Vector]:
        """The step of each part on each sample, and the standard error of the sum of each part.

        `path` has the scores of the stored and the further answers, in their order: NaN if a sample was not asked.
        """
        changes = np.diff(path, axis=0)
        parts = np.array([sum(changes[n] for n, each in enumerate(self.step_keys) if each == key) for key in self.keys])
        whole, known = path[-1] - path[0], ~np.isnan(path).any(axis=0)
        strata = _strata(path[0], path[-1])
        variances = np.zeros(len(parts))
        for stratum in np.unique(strata[strata >= 0]).tolist():
            inside = strata == stratum
            variances += _fill(parts, whole, inside & known, inside & ~known)
        parts[-1, ~known] = whole[~known] - parts[:-1, ~known].sum(axis=0)
        return parts, np.sqrt(variances)


def _strata(first: Vector, last: Vector) -> Codes:
    """The stratum of each sample: that of its two scores. -1 if one of them is missing."""
    pairs = np.stack([first, last], axis=1)
    scored = ~np.isnan(pairs).any(axis=1)
    codes = np.full(len(pairs), -1, np.int64)
    distinct, places = np.unique(pairs[scored], axis=0, return_inverse=True)
    codes[scored] = places.reshape(-1)
    if len(distinct) > _MOST_STRATA:
        codes[scored] = 1 + np.sign(last - first)[scored].astype(np.int64)
    return codes


def _fill(parts: Steps, whole: Vector, asked: Mask, others: Mask) -> Vector:
    """Give the samples that were not asked the mean steps of a stratum. Returns the variances of the sums of the parts.

    Two more observations, that all of the difference is of the part and that nothing is, keep the variance of a few
    equal ones from being zero.
    """
    count, rest, size = int(asked.sum()), int(others.sum()), float(np.abs(whole[asked | others]).mean())
    if not rest:
        return np.zeros(len(parts))
    if not count:  # nothing is known about them: the last part has it, and it could be all of each
        parts[:, others] = 0.0
        return np.full(len(parts), (rest * size) ** 2)
    total = float(whole[asked].sum())
    shares = parts[:, asked].sum(axis=1) / (total if size else count)
    fitted = whole if size else np.ones(len(whole))
    parts[:, others] = shares[:, None] * fitted[others]
    errors = parts[:, asked] - shares[:, None] * fitted[asked]
    scale = size or float(np.abs(parts[:, asked]).max())
    prior = scale**2 * (shares**2 + (1 - shares) ** 2 if size else np.full(len(shares), 2.0))
    spread = ((errors**2).sum(axis=1) + prior) / (count + 1)
    many = count + rest
    result: Vector = spread * (many * rest / count + rest)
    return result


def drawn_rows(first: Vector, last: Vector, count: int, seed: int) -> Codes:
    """The places of samples that are drawn: at least two of each stratum, and the others in proportion."""
    strata, random = _strata(first, last), np.random.default_rng(seed)
    groups = [np.flatnonzero(strata == code) for code in np.unique(strata[strata >= 0]).tolist()]
    total = sum(map(len, groups))
    wanted = [min(len(group), max(2, round(count * len(group) / total))) for group in groups]
    while sum(wanted) > count:
        wanted[int(np.argmax(wanted))] -= 1
    drawn = [random.permutation(group)[:number] for group, number in zip(groups, wanted, strict=True)]
    chosen = np.concatenate([*drawn, np.empty(0, np.int64)]).astype(np.int64)
    left = np.setdiff1d(np.flatnonzero(strata >= 0), chosen)
    more = random.permutation(left)[: max(0, count - len(chosen))]
    result: Codes = np.sort(np.concatenate([chosen, more]))
    return result
