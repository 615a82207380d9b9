"""What metrics that ask a model have in common: a model that is looked for before a run."""

from __future__ import annotations

from typing import Any

from multimodal_eval.core.errors import UnavailableError
from multimodal_eval.core.metric import Metric, Placement
from multimodal_eval.core.signature import Signature

TEXT_CUT = "text_cut"  # a warning: the model reads only the beginning of a text


class ModelMetric(Metric):
    """A metric whose options name models."""

    placement: Placement = "model"

    def model_labels(self) -> dict[str, str]:
        """Option -> the label of the model that it names. Loads nothing."""
        return {}

    def check_models(self) -> None:
        """An `UnavailableError` that says how to get a model that is not on this machine. Loads nothing."""

    def signature(self, state: Any = None) -> Signature:
        """The options, with the models' revisions; a directory that is not here stands by its name alone."""
        return Signature(self.name, self.version, {**self.options, **self.known_labels()})

    def known_labels(self) -> dict[str, str]:
        """The models' labels; none where one cannot be looked up."""
        try:
            return self.model_labels()
        except UnavailableError:
            return {}

    def unavailable(self) -> str | None:
        """Whether a model is missing here."""
        try:
            self.check_models()
        except UnavailableError as absent:
            return str(absent)
        return None
