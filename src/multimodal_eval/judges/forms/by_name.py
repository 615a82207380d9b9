"""Find a form by its name."""

from __future__ import annotations

from collections.abc import Callable

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.judge_config import JudgeConfig, JudgeForm
from multimodal_eval.judges.form import Form
from multimodal_eval.judges.forms.listwise import Listwise
from multimodal_eval.judges.forms.pairwise import Pairwise
from multimodal_eval.judges.forms.scale import Scale

__all__ = ["FORMS", "form_of"]

FORMS: dict[JudgeForm, Callable[[JudgeConfig], Form]] = {"scale": Scale, "pairwise": Pairwise, "listwise": Listwise}


def form_of(config: JudgeConfig) -> Form:
    """The form of a judge."""
    try:
        return FORMS[config.form](config)
    except KeyError:
        raise ConfigError(f"the form {config.form!r} of the judge {config.name!r} does not exist yet") from None
