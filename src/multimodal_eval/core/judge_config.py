"""The settings of a judge: what it is asked about every sample, and which models are asked."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec

from multimodal_eval.core.generation_config import Detail, GenerationConfig, MediaAs, Parameters, Price
from multimodal_eval.core.sample import Sample

__all__ = [
    "COMPARING",
    "DECIDED",
    "EFFORT",
    "PREFIX",
    "UNASKED",
    "Combine",
    "Criterion",
    "JudgeConfig",
    "JudgeForm",
    "JudgeModel",
    "JudgeUntil",
    "Orders",
    "Shown",
    "judged_columns",
    "judged_texts",
]

JudgeForm = Literal[
    "scale",  # a number on a scale
    "binary",  # yes or no
    "rubric",  # a number for each of several criteria
    "pairwise",  # which of two answers is better
    "listwise",  # several answers in order
    "clair",  # how likely a caption describes the same image as the references
    "fleur",  # how well a caption describes its image, by the probabilities of the digits
    "extract",  # the choice in an answer in which a rule finds none
]
COMPARING: tuple[JudgeForm, ...] = ("pairwise", "listwise")  # forms that compare answers
PREFIX = "judge:"  # of a metric that is a judge: judge:NAME, judge:FILE.yaml
DECIDED = "not compared: it was already certain which system is better"  # why a sample is unscored, with `until`
Orders = Literal["both", "given", "random"]
Combine = Literal["mean", "median", "majority"]
Shown = Literal["question", "media", "references", "choices"]


class Criterion(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """One criterion of a rubric."""

    name: str
    question: str
    weight: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    scale: tuple[int, int] | None = None  # None: the scale of the judge


class JudgeModel(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """A model that judges."""

    model: str  # PROVIDER:NAME
    base_url: str | None = None  # recorded, and not part of the signature
    key_env: str | None = None
    revision: str | None = None
    price: Price | None = None  # set by the run: from the price file


class JudgeUntil(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """When a judge may stop comparing two systems before all samples are compared."""

    width: Annotated[float, msgspec.Meta(gt=0, lt=0.5)] | None = None  # half the width of the win rate's interval
    ranked: bool = False  # when it is certain which of the two is better
    margin: Annotated[float, msgspec.Meta(gt=0, lt=0.5)] | None = None  # or that the win rate is so close to a half
    confidence: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.95  # that the intervals of all pairs are always right


class JudgeConfig(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """A judge, as in its YAML file and in run.json. Keys come from the environment and are never part of it."""

    name: str = ""  # of the metric; empty: the name of the file
    form: JudgeForm = "scale"
    models: list[JudgeModel] = []  # several are a panel
    question: str = ""  # what the judge decides
    criteria: list[Criterion] = []  # of a rubric
    scale: tuple[int, int] = (1, 5)
    show: tuple[Shown, ...] = ("question", "media", "references", "choices")  # if the sample has it
    require_references: bool = False  # a sample without references is unscored
    prompt: str | None = None  # the file of a template; None: the template of the form
    template: str | None = None  # set by the run: the text of the template
    system: str | None = None
    explain: bool = False  # let the judge give its reasons before the verdict
    structured: bool = True  # ask for JSON by a schema if the endpoint supports that
    expected: bool = False  # the mean of the scale by the probabilities of the tokens, if the endpoint tells them
    baseline: str = "baseline"  # the column with the other answer, or the other answers
    orders: Orders = "both"  # of the answers that are compared
    skip_identical: bool = False  # two equal answers are a tie without a question
    repeats: Annotated[int, msgspec.Meta(ge=1)] = 1
    combine: Combine = "mean"  # the verdicts of several models
    parameters: Parameters = Parameters(temperature=0.0)
    max_pixels: Annotated[int, msgspec.Meta(ge=1)] | None = None
    detail: Detail | None = None
    frames: Annotated[int, msgspec.Meta(ge=1)] | None = None
    frames_per_second: Annotated[float, msgspec.Meta(gt=0)] | None = None
    media_as: MediaAs = "data"
    # Not part of the signature: how many, how fast, how long, how expensive.
    until: JudgeUntil | None = None
    concurrency: Annotated[int, msgspec.Meta(ge=1)] | None = None
    timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None
    retries: Annotated[int, msgspec.Meta(ge=0)] | None = None
    prices: str | None = None  # a price file
    budget: Annotated[float, msgspec.Meta(gt=0)] | None = None
    use_cache: bool = True
    use_probe: bool = True

    def generation(self, judge: int) -> GenerationConfig:
        """The settings with which one of the models is asked."""
        model = self.models[judge]
        return GenerationConfig(
            model=model.model,
            base_url=model.base_url,
            key_env=model.key_env,
            revision=model.revision,
            parameters=self.parameters,
            max_pixels=self.max_pixels,
            detail=self.detail,
            frames=self.frames,
            frames_per_second=self.frames_per_second,
            media_as=self.media_as,
            concurrency=self.concurrency,
            timeout=self.timeout,
            retries=self.retries,
            prices=self.prices,
            price=model.price,
            budget=self.budget,
            use_cache=self.use_cache,
            retry_failures=True,  # a verdict that cannot be read says nothing about the answer
            use_probe=self.use_probe,
        )


# Settings that change scores but no request: with other values, stored verdicts are used again.
UNASKED = ("name", "combine")
# Settings that change neither: how fast, how long, how expensive. They may change while a run is continued.
EFFORT = ("concurrency", "timeout", "retries", "prices", "budget", "use_cache", "use_probe")


def judged_columns(judges: Mapping[str, JudgeConfig]) -> tuple[str, ...] | None:
    """The metadata columns with further answers that judges read; None without judges."""
    if not judges:
        return None
    return tuple(sorted({judge.baseline for judge in judges.values() if judge.form in COMPARING}))


def judged_texts(sample: Sample, columns: Sequence[str]) -> list[str]:
    """The answers of a sample that a judge reads: its own, and those in metadata columns."""
    others = [sample.metadata.get(column) for column in columns]
    listed = [text for other in others for text in (other if isinstance(other, list) else [other])]
    return [text for text in (sample.generated_answer, *listed) if isinstance(text, str)]
