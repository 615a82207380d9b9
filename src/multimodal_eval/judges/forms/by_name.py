"""Find a form by its name."""

from __future__ import annotations

from collections.abc import Callable

from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.core.judge_config import JudgeConfig, JudgeForm
from multimodal_eval.judges.form import Form
from multimodal_eval.judges.forms.binary import Binary
from multimodal_eval.judges.forms.clair import Clair
from multimodal_eval.judges.forms.extract import Extract
from multimodal_eval.judges.forms.listwise import Listwise
from multimodal_eval.judges.forms.pairwise import Pairwise
from multimodal_eval.judges.forms.rubric import Rubric
from multimodal_eval.judges.forms.scale import Scale
from multimodal_eval.judges.settings import check_judge

__all__ = ["FORMS", "form_of"]

FORMS: dict[JudgeForm, Callable[[JudgeConfig], Form]] = {
    "scale": Scale,
    "binary": Binary,
    "rubric": Rubric,
    "clair": Clair,
    "pairwise": Pairwise,
    "listwise": Listwise,
    "extract": Extract,
}


def form_of(config: JudgeConfig) -> Form:
    """The form of a judge. Raises ConfigError if its settings contradict each other."""
    check_judge(config)
    if config.form not in FORMS:  # of a configuration that was made in Python
        raise UnknownNameError("form of judging", config.form, list(FORMS))
    return FORMS[config.form](config)
