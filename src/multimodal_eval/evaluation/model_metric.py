"""What metrics that ask a model have in common: checked options, and a model that is looked for before a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from multimodal_eval.core.errors import ConfigError, UnavailableError, did_you_mean
from multimodal_eval.core.metric import Metric, Placement
from multimodal_eval.core.signature import Signature

TEXT_CUT = "text_cut"  # a warning: the model reads but the beginning of a text


class ModelMetric(Metric):
    """A metric with the options `defaults`; those in `choices` take one of a few values, the others a name."""

    placement: Placement = "model"
    defaults: Mapping[str, Any] = {}
    choices: Mapping[str, Sequence[str]] = {}

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self.options = {**self.defaults, **(options or {})}

    def configure(self, options: Mapping[str, Any]) -> Self:
        """The same with other options, which are checked here."""
        for key, value in options.items():
            if key not in self.options:
                raise ConfigError(f"{self.name} has no option {key!r}.{did_you_mean(key, list(self.options))}")
            self.check_option(key, value)
        return type(self)({**self.options, **options})

    def check_option(self, key: str, value: object) -> None:
        """Refuse a value that the option does not take."""
        if key in self.choices and value not in self.choices[key]:
            allowed = ", ".join(self.choices[key])
            raise ConfigError(f"the option `{key}` of {self.name} must be one of {allowed}. Got {value!r} instead.")
        if not isinstance(value, str) or not value:
            raise ConfigError(f"the option `{key}` of {self.name} must be a name. Got {value!r} instead.")

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
