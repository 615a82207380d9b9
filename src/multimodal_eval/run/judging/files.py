"""Judges in the metrics of a configuration: `judge:FILE.yaml`, or `judge:NAME` for one that comes with the package."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import ConfigError, shorten
from multimodal_eval.core.generation_config import Parameters
from multimodal_eval.core.inside import NamingFile, read_text
from multimodal_eval.core.judge_config import PREFIX, Criterion, JudgeConfig, JudgeModel
from multimodal_eval.core.metric import check_name
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.setting_words import Sections, in_words
from multimodal_eval.core.yaml_text import parse_yaml, read_yaml
from multimodal_eval.generate.turns import Draft
from multimodal_eval.judges.forms.by_name import form_of, judge_text

__all__ = ["SECTIONS", "is_file", "judge_card", "read_judge", "with_extraction", "with_judges", "with_template"]

_SUFFIXES = (".yaml", ".yml")
SECTIONS: Sections = {"$.criteria": Criterion, "$.models": JudgeModel, "$.parameters": Parameters}


def with_judges(config: RunConfig) -> RunConfig:
    """The configuration with the content of its judges' files, so that a resumed run does not read them again.

    Templates of judges that are declared in the configuration itself are relative to the working directory.
    """
    read = {
        entry: read_judge(entry.removeprefix(PREFIX), allow_outside=config.allow_outside)
        for entry in config.metrics or ()
        if entry.startswith(PREFIX)
    }
    if not read:
        return msgspec.structs.replace(config, judges=_settled(config.judges)) if config.judges else config
    names = [judge.name for judge in read.values()]
    for name in names:
        check_name(name)
        if names.count(name) > 1:
            raise ConfigError(f"two judges have the name {name!r}. Write another `name` into one of the files")
    metrics = [read[entry].name if entry in read else entry for entry in config.metrics or ()]
    declared = dict(config.judges)
    changed = {judge.name: _with_declared(judge, declared.pop(judge.name, None)) for judge in read.values()}
    judges = {**_settled(declared), **changed}
    return msgspec.structs.replace(config, metrics=metrics, judges=judges)


def _with_declared(judge: JudgeConfig, declared: JudgeConfig | None) -> JudgeConfig:
    """The judge of a file, with the settings that the configuration has for a judge of its name."""
    if declared is None:
        return judge
    from multimodal_eval.judges.forms.by_name import check_judge

    usual = JudgeConfig()
    settings = {name: getattr(declared, name) for name in JudgeConfig.__struct_fields__}
    judge = msgspec.structs.replace(
        judge, **{name: value for name, value in settings.items() if value != getattr(usual, name)}
    )
    check_judge(judge)
    return judge


def _settled(judges: Mapping[str, JudgeConfig]) -> dict[str, JudgeConfig]:
    """Judges that a configuration declares itself, with their names and the texts of their templates."""
    from multimodal_eval.judges.forms.by_name import check_judge

    settled = {}
    for name, judge in judges.items():
        if judge.name not in ("", name):
            raise ConfigError(f"`judges`: the judge of {name} has another name, {judge.name!r}. Leave it out")
        if judge.name != name:
            judge = msgspec.structs.replace(judge, name=name)
        if judge.prompt is not None:
            judge = with_template(judge, Path(judge.prompt))
        check_judge(judge)
        settled[name] = judge
    return settled


def with_extraction(config: RunConfig) -> RunConfig:
    """The configuration with a judge for each metric that asks one about answers which its rule cannot read."""
    judges = dict(config.judges)
    for name, options in config.options.items():
        if options.get("fallback") == "judge" and name not in judges:
            judges[name] = JudgeConfig(name=name, form="extract")
    return msgspec.structs.replace(config, judges=judges)


def is_file(source: str) -> bool:
    """Whether the source of a judge is a file, and not the name of a built-in one."""
    path = Path(source)
    return path.suffix.lower() in _SUFFIXES or len(path.parts) > 1


def read_judge(source: str, *, allow_outside: bool = False) -> JudgeConfig:
    """The judge in a YAML file, or the one with that name in the package. Raises ConfigError.

    In the file, `model` may be a single name, and `prompt` is a file in its folder, or anywhere with `allow_outside`.
    """
    from multimodal_eval.judges.forms.by_name import check_judge, judge_text

    path = Path(source)
    if is_file(source):
        content = read_yaml(path, "the judge", unique_keys=True)
    else:
        content = parse_yaml(judge_text(source), unique_keys=True)
    judge = _converted(content, source)
    if not judge.name:
        judge = msgspec.structs.replace(judge, name=path.stem)
    if judge.template is not None:
        raise ConfigError(f"{source}: `template` is set by the program. Name the file of your template in `prompt`")
    if judge.prompt is not None:
        naming = NamingFile(path, "the judge's file", allow_outside)
        judge = with_template(judge, naming.inside("prompt", judge.prompt, "Put a copy of it there"))
    try:
        check_judge(judge)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None
    return judge


def with_template(judge: JudgeConfig, file: Path) -> JudgeConfig:
    """The judge with the text of its template, which is read only once. Raises ConfigError."""
    if judge.template is not None:
        return judge
    from multimodal_eval.generate.template import LARGEST_FILE
    from multimodal_eval.judges.prompt_texts import template_of

    judge = msgspec.structs.replace(judge, template=read_text(file, "the template", LARGEST_FILE))
    template_of(judge)
    return judge


def _converted(content: Any, source: str) -> JudgeConfig:
    if not isinstance(content, dict):
        got = "nothing" if content is None else shorten(content)
        raise ConfigError(f"{source}: a judge must be a section with keys, such as `form: scale`. Got {got} instead.")
    content = dict(content)
    if "model" in content:
        if "models" in content:
            raise ConfigError(f"{source}: write `model` for one model, or `models` for several, and not both")
        content["models"] = [content.pop("model")]
    if isinstance(content.get("models"), list):
        content["models"] = [{"model": each} if isinstance(each, str) else each for each in content["models"]]
    if isinstance(content.get("parameters"), dict):  # the default temperature stays, unless the file says otherwise
        content["parameters"] = {**msgspec.to_builtins(JudgeConfig().parameters), **content["parameters"]}
    try:
        return msgspec.convert(content, JudgeConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{source}: {in_words(str(error), content, JudgeConfig, SECTIONS)}") from None


def judge_card(source: str) -> str:
    """The file of a judge, and the request for a sample whose fields are their names in capitals."""
    judge = read_judge(source)
    text = Path(source).read_text(encoding="utf-8") if is_file(source) else judge_text(source)
    form = form_of(judge)
    low, high = form.bounds
    lines = [
        text.rstrip(),
        "",
        f"# Range: {low:g} to {high:g}. Needs: {', '.join(form.needs)}.",
        "# What the judge is asked, for a sample whose fields are their names in capitals:",
        "",
        *(line for order in form.orders[:1] for draft in form.drafts(_sample(judge), order) for line in _lines(draft)),
    ]
    return "\n".join(lines) + "\n"


def _sample(judge: JudgeConfig) -> Sample:
    return Sample(
        "ID",
        question="QUESTION",
        references=["REFERENCE"],
        generated_answer="ANSWER",
        image="IMAGE",
        metadata={judge.baseline: ["OTHER"] if judge.form == "listwise" else "OTHER"},
    )


def _lines(draft: Draft) -> list[str]:
    parts = [part if isinstance(part, str) else f"<{part.kind}>" for part in draft.parts]
    return [f"[{draft.role}]", *parts]
