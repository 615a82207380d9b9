"""The base class of metrics that use a model: they check before a run that the model is available."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from multimodal_eval.core.errors import UnavailableError
from multimodal_eval.core.metric import Metric, Placement
from multimodal_eval.models.torch_device import IN_TORCH

TEXT_CUT = "text_cut"  # a warning: the model read only the beginning of a text


class ModelMetric(Metric):
    """A metric whose options name models."""

    placement: Placement = "model"
    part_factor_in_torch: int = 1

    def model_labels(self) -> dict[str, str]:
        """The label of the model that each option names. Loads nothing."""
        return {}

    @property
    def part_factor(self) -> int:
        """How many times as many samples a part has as with other models.

        An encoder in torch may run on a GPU, which scores a small part no faster than a larger one.
        """
        in_torch = any(IN_TORCH in label for label in self.known_labels().values())
        return self.part_factor_in_torch if in_torch else 1

    def check_models(self) -> None:
        """Raise an `UnavailableError` that says how to get a model that is missing. Loads nothing."""

    def settings(self, state: Any) -> Mapping[str, object]:
        """The options with the models' revisions; a missing directory appears under its name alone."""
        return {**super().settings(state), **self.known_labels()}

    def known_labels(self) -> dict[str, str]:
        """The models' labels; empty if one cannot be looked up."""
        try:
            return self.model_labels()
        except UnavailableError:
            return {}

    def unavailable(self) -> str | None:
        """The reason why a model is missing, or None."""
        try:
            self.check_models()
        except UnavailableError as absent:
            return str(absent)
        return None
