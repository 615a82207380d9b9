"""Which models the judges of a run ask, and how hard: what a command or a call says on top of the judges' files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import ConfigError, did_you_mean, shorten
from multimodal_eval.core.generation_config import Parameters
from multimodal_eval.core.judge_config import EFFORT, PREFIX, Criterion, JudgeConfig, JudgeModel
from multimodal_eval.core.metric import check_name, configured
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.system_files import NamingFile, read_text
from multimodal_eval.core.yaml_text import parse_yaml, read_yaml

if TYPE_CHECKING:  # imported by the functions that need them: most runs ask no judge
    from multimodal_eval.core.setting_words import Sections
    from multimodal_eval.generate.protocol import Generator
    from multimodal_eval.generate.turns import Draft

__all__ = [
    "CHANGEABLE",
    "SECTIONS",
    "Judge",
    "JudgeSettings",
    "changed",
    "is_file",
    "judge_card",
    "models_of",
    "read_judge",
    "with_effort",
    "with_extraction",
    "with_judge",
    "with_judges",
    "with_prices",
    "with_settings",
    "with_template",
]


Judge: TypeAlias = "str | JudgeModel | Generator | Callable[..., Any]"
# Settings of a judge that change no verdict; they may change while a run is continued.
CHANGEABLE = ("base_url", "key_env", *EFFORT)


class JudgeSettings(msgspec.Struct, frozen=True):
    """Settings for all judges of a run. None leaves each judge its own."""

    models: Sequence[Judge] = ()
    addresses: Sequence[str] = ()  # one for all models, or one for each
    key_envs: Sequence[str] = ()
    repeats: int | None = None
    concurrency: int | None = None
    prices: str | None = None
    budget: float | None = None
    use_cache: bool | None = None

    @classmethod
    def of(cls, judge: Judge | Sequence[Judge] | None) -> JudgeSettings:
        """The settings that name a judge, or a panel."""
        if judge is None:
            return cls()
        return cls(list(judge) if isinstance(judge, Sequence) and not isinstance(judge, str) else [judge])


def with_judge(config: RunConfig, settings: JudgeSettings | None) -> RunConfig:
    """The configuration with these settings for all its judges. Several models are a panel."""
    if settings is None or settings == JudgeSettings():
        return config
    config = with_extraction(config)
    if not config.judges:
        _check_fallbacks(config)
        raise ConfigError(
            "a judge is named, but no metric of this run asks one. Name such a metric: --metrics judge:NAME, or "
            "judge:FILE.yaml (`mmeval ls judges`)"
        )
    judges = {name: with_settings(each, settings) for name, each in config.judges.items()}
    return msgspec.structs.replace(config, judges=judges)


def _check_fallbacks(config: RunConfig) -> None:
    """Refuse a misspelt `fallback: judge`, which may be the reason that no judge is asked."""
    from multimodal_eval.evaluation.metrics_registry import is_available, resolve

    for name, options in config.options.items():
        metric = config.variants.get(name, name)
        if "fallback" in options and is_available(metric):
            configured(resolve(metric), {"fallback": options["fallback"]})


def with_settings(judge: JudgeConfig, settings: JudgeSettings) -> JudgeConfig:
    """The judge with the settings of a command, on top of those of its file."""
    models = models_of(settings.models) or judge.models
    if settings.addresses:
        models = _each(models, "base_url", settings.addresses, "--judge-url")
    if settings.key_envs:
        models = _each(models, "key_env", settings.key_envs, "`key_env`")
    names = ("repeats", "concurrency", "prices", "budget", "use_cache")
    changes: dict[str, Any] = {name: getattr(settings, name) for name in names if getattr(settings, name) is not None}
    judge = msgspec.structs.replace(judge, models=models, **changes)
    return judge if settings.prices is None else _without_prices(judge)


def _each(models: list[JudgeModel], field: str, values: Sequence[str], option: str) -> list[JudgeModel]:
    """The models with a value for all of them, or with one for each."""
    if len(values) not in (1, len(models)):
        raise ConfigError(f"{option} must be given once, or once for each of the {len(models)} judges")
    several = values if len(values) == len(models) else [values[0]] * len(models)
    return [msgspec.structs.replace(model, **{field: value}) for model, value in zip(models, several, strict=True)]


def models_of(judges: Sequence[Judge]) -> list[JudgeModel]:
    """The models by name. Generators and functions of this program are made known by their labels.

    Two functions with the same source get different names, because they may still be different.
    """
    from multimodal_eval.judges.panel import check_known

    models: list[JudgeModel] = []
    known: dict[str, Generator] = {}
    for judge in judges:
        if isinstance(judge, JudgeModel):
            check_known(judge.model)
            models.append(judge)
        elif isinstance(judge, str):
            check_known(judge)
            models.append(JudgeModel(model=judge))
        else:
            from multimodal_eval.run.generation import as_generator

            generator = as_generator(judge, "judge")
            name = _free(generator.label, known)
            known[name] = generator
            models.append(JudgeModel(model=name))
    if known:
        from multimodal_eval.judges.panel import use_generators

        use_generators(known)
    return models


def _free(label: str, known: Mapping[str, Generator]) -> str:
    number, name = 1, label
    while name in known:
        number += 1
        name = f"{label}#{number}"
    return name


def with_effort(config: RunConfig, changes: Mapping[str, Any]) -> RunConfig:
    """The configuration of a run that is continued. Only settings may change that change no verdict.

    `changes` are settings of all judges, or by the name of a judge its settings.
    """
    by_judge = {name: value for name, value in changes.items() if name in config.judges and isinstance(value, Mapping)}
    shared = {name: value for name, value in changes.items() if name not in by_judge}
    if not changes:
        return config
    judges = {name: _with_effort(each, {**shared, **by_judge.get(name, {})}) for name, each in config.judges.items()}
    return msgspec.structs.replace(config, judges=judges)


def _with_effort(judge: JudgeConfig, changes: Mapping[str, Any]) -> JudgeConfig:
    for name in changes:
        if name not in CHANGEABLE:
            raise ConfigError(
                f"{name!r} of a judge cannot change while a run is continued.{did_you_mean(name, CHANGEABLE)} "
                "Start a new run; its cache has the replies to equal questions"
            )
    settings = JudgeSettings(addresses=_several(changes.get("base_url")), key_envs=_several(changes.get("key_env")))
    return changed(with_settings(judge, settings), {name: changes[name] for name in changes if name in EFFORT})


def _several(value: str | Sequence[str] | None) -> Sequence[str]:
    return () if value is None else [value] if isinstance(value, str) else value


def changed(judge: JudgeConfig, settings: Mapping[str, Any]) -> JudgeConfig:
    """The judge with other settings. Raises ConfigError. With other prices, the known ones are forgotten."""
    for name in settings:
        if name not in JudgeConfig.__struct_fields__:
            raise ConfigError(f"a judge has no setting {name!r}.{did_you_mean(name, JudgeConfig.__struct_fields__)}")
    content = {**msgspec.to_builtins(judge), **msgspec.to_builtins(dict(settings))}
    if "prompt" in settings:
        content.pop("template", None)  # that of the other prompt
    try:
        judge = msgspec.convert(content, JudgeConfig)
    except msgspec.ValidationError as error:
        from multimodal_eval.core.setting_words import in_words

        fault = in_words(str(error), content, JudgeConfig, SECTIONS)
        raise ConfigError(f"the judge {judge.name!r}: {fault}") from None
    return _without_prices(judge) if "prices" in settings else judge


def _without_prices(judge: JudgeConfig) -> JudgeConfig:
    return msgspec.structs.replace(judge, models=[msgspec.structs.replace(model, price=None) for model in judge.models])


def with_prices(judge: JudgeConfig) -> JudgeConfig:
    """The judge with the prices of its models; those that are known are not read again."""
    if judge.prices is not None and any(model.price is None for model in judge.models):
        from multimodal_eval.generate.meter import price_of, read_prices

        path = Path(judge.prices)
        prices = read_prices(path)
        models = [
            msgspec.structs.replace(model, price=model.price or price_of(model.model, prices, str(path)))
            for model in judge.models
        ]
        judge = msgspec.structs.replace(judge, models=models, prices=str(path.resolve()))
    currencies = {model.price.currency for model in judge.models if model.price is not None}
    if len(currencies) > 1:
        raise ConfigError(
            f"the judge {judge.name!r}: the prices of its models must be in one currency. "
            f"Got {' and '.join(sorted(currencies))} instead."
        )
    if judge.budget is None:
        return judge
    if not judge.models or any(model.price is None for model in judge.models):
        raise ConfigError(f"the judge {judge.name!r}: a budget needs prices: name a price file in its setting `prices`")
    if judge.parameters.max_tokens is None:
        raise ConfigError(
            f"the judge {judge.name!r}: a budget needs a limit of tokens per verdict, because a reply may be of any "
            "length without one: set `parameters: {max_tokens: 500}` in the judge's file"
        )
    return judge


# Judges in the metrics of a configuration: `judge:FILE.yaml`, or `judge:NAME` for one that comes with the package.

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
    changed: dict[str, JudgeConfig] = {}
    for judge in read.values():
        settings = declared.pop(judge.name, None)
        changed[judge.name] = judge if settings is None else _with_declared(judge, settings)
    judges = {**(_settled(declared) if declared else {}), **changed}
    return msgspec.structs.replace(config, metrics=metrics, judges=judges)


def _with_declared(judge: JudgeConfig, declared: JudgeConfig) -> JudgeConfig:
    """The judge of a file, with the settings that the configuration has for a judge of its name."""
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
        from multimodal_eval.core.setting_words import in_words

        raise ConfigError(f"{source}: {in_words(str(error), content, JudgeConfig, SECTIONS)}") from None


def judge_card(source: str) -> str:
    """The file of a judge, and the request for a sample whose fields are their names in capitals."""
    from multimodal_eval.judges.forms.by_name import form_of, judge_text

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
