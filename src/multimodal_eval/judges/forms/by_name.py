"""Find a form, or a judge that comes with the package, by its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files

from multimodal_eval.core.errors import ConfigError, UnknownNameError, did_you_mean
from multimodal_eval.core.judge_config import COMPARING, JudgeConfig, JudgeForm
from multimodal_eval.judges.form import Form
from multimodal_eval.judges.forms.comparisons import Listwise, Pairwise
from multimodal_eval.judges.forms.one_answer import Binary, Clair, Extract, Fleur, Rubric, Scale

__all__ = ["FORMS", "check_judge", "form_of", "judge_text", "judges"]


# Settings of a judge that contradict each other, in plain words.

_LONGEST_SCALE = 1_000  # values
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_TAKEN = re.compile(r"reason|expected|by|judge_\d+|judge|repeat|order")


# Settings that only some forms have. For the others, they would be ignored.
_FORMS_WITH: dict[str, tuple[JudgeForm, ...]] = {
    "scale": ("scale", "rubric"),
    "expected": ("scale", "binary", "rubric", "clair", "fleur", "pairwise"),
    "require_references": ("scale", "binary", "rubric", "clair", "fleur", *COMPARING),
    "baseline": COMPARING,
    "orders": COMPARING,
    "skip_identical": ("pairwise",),
    "question": ("scale", "binary", "rubric", "clair", "fleur", *COMPARING),
}
_DEFAULTS = JudgeConfig()


def check_judge(config: JudgeConfig) -> None:
    """Raise ConfigError for settings that cannot work."""
    for fault in _faults(config):
        raise ConfigError(f"the judge {config.name!r}: {fault}" if config.name else f"the judge: {fault}")


def _faults(config: JudgeConfig) -> Iterator[str]:
    yield from _scale_faults("scale", config.scale)
    if config.form == "rubric" and not config.criteria:
        yield "a rubric needs `criteria`: a list with a `name` and a `question` each"
    if config.form != "rubric" and config.criteria:
        yield f"only a rubric has `criteria`. Write `form: rubric` instead of {config.form!r}"
    yield from _ignored_settings(config)
    if config.criteria:
        yield from _criteria_faults(config)
    if len(config.models) > 1:
        yield from _panel_faults(config)
    if config.combine == "majority" and config.expected:
        yield "`combine: majority` counts equal verdicts, and expected scores are hardly ever equal. Use mean or median"


def _ignored_settings(config: JudgeConfig) -> Iterator[str]:
    for name, forms in _FORMS_WITH.items():
        if config.form not in forms and getattr(config, name) != getattr(_DEFAULTS, name):
            *others, last = forms
            which = f"the forms {', '.join(others)} and {last}" if others else f"the form {last}"
            this = f"this judge has the form {config.form}"
            yield f"`{name}` is a setting of {which}, but {this}. Leave it out, or write its `form`"


def _scale_faults(name: str, scale: tuple[int, int]) -> Iterator[str]:
    low, high = scale
    if low >= high:
        yield f"`{name}` must be the lowest and the highest number, such as [1, 5]. Got [{low}, {high}] instead."
    if high - low >= _LONGEST_SCALE:
        yield f"`{name}` must not have more than {_LONGEST_SCALE:,} values. Got [{low}, {high}] instead."


def _criteria_faults(config: JudgeConfig) -> Iterator[str]:
    names = [criterion.name for criterion in config.criteria]
    for criterion in config.criteria:
        name = criterion.name
        if not _NAME.fullmatch(name) or _TAKEN.fullmatch(name):
            yield f"{name!r} cannot name a criterion: use letters, digits, '_' and '-', and not `reason` or `judge_1`"
        if names.count(name) > 1:
            yield f"the criterion {name!r} occurs twice"
        if criterion.scale is not None:
            yield from _scale_faults(f"criteria.{name}.scale", criterion.scale)
    if not sum(criterion.weight for criterion in config.criteria) > 0:
        yield "no criterion has a `weight` above 0"


def _panel_faults(config: JudgeConfig) -> Iterator[str]:
    """Models that the signature and the cache cannot tell apart: neither knows addresses."""
    names = [(model.model, model.revision) for model in config.models]
    for name, revision in dict.fromkeys(names):
        if names.count((name, revision)) > 1:
            yield (
                f"the model {name!r} is in the panel twice. To ask one model several times, use `repeats` "
                "in its settings. If two servers have different models with this name, write a `revision` for each "
                "into the judge's file"
            )


FORMS: dict[JudgeForm, Callable[[JudgeConfig], Form]] = {
    "scale": Scale,
    "binary": Binary,
    "rubric": Rubric,
    "clair": Clair,
    "fleur": Fleur,
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


# The judges that come with the package: the files in `built_in`. Their models are the user's choice.

_FOLDER = files("multimodal_eval.judges").joinpath("built_in")
_SUFFIX = ".yaml"


@cache
def judges() -> dict[str, str]:
    """The names of the judges, and what each is for: the first comment of its file."""
    names = sorted(file.name.removesuffix(_SUFFIX) for file in _FOLDER.iterdir() if file.name.endswith(_SUFFIX))
    return {name: judge_text(name).partition("\n")[0].removeprefix("#").strip() for name in names}


def judge_text(name: str) -> str:
    """The YAML text of a judge."""
    file = _FOLDER.joinpath(f"{name}{_SUFFIX}")
    if not name.isidentifier() or not file.is_file():
        raise ConfigError(
            f"no judge is named {name!r}.{did_you_mean(name, list(judges()))}. The file of your own judge ends in .yaml"
        )
    return file.read_text(encoding="utf-8")
