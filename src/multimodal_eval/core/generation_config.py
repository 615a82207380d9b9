"""The settings of a generation: which model, how it is asked, and how hard."""

from typing import Annotated, Any, Literal

import msgspec

__all__ = [
    "CHANGEABLE",
    "Detail",
    "GenerationConfig",
    "MediaAs",
    "ModelProfile",
    "Parameters",
    "Price",
    "Probe",
    "Thinking",
    "UntilConfig",
]

Detail = Literal["low", "high", "auto"]
MediaAs = Literal["data", "url", "none"]
Reducer = Annotated[str, msgspec.Meta(pattern=r"^(mode|max|majority|(at_least_|pass\^)[1-9][0-9]{0,3})$")]
Probe = Literal["blind", "shuffled", "rotated", "caption"]


class Parameters(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """The parameters of generation. None leaves a parameter to the model's own default."""

    temperature: Annotated[float, msgspec.Meta(ge=0)] | None = None
    top_p: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    seed: int | None = None
    stop: list[str] = []
    reasoning_effort: str | None = None
    logprobs: bool = False  # ask for the log-probabilities of the answer's tokens
    extra: dict[str, Any] = {}  # further fields of the request's body
    # The number of most likely tokens per position; left out if the endpoint rejects it.
    top_logprobs: Annotated[int, msgspec.Meta(ge=1, le=20)] | None = None

    def of_epoch(self, epoch: int) -> "Parameters":
        """The parameters in an epoch, which starts at 1: its seed is the given one plus the number of epochs before."""
        if self.seed is None or epoch == 1:
            return self
        return msgspec.structs.replace(self, seed=self.seed + epoch - 1)


class Thinking(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """How a model is told whether to think, and how its thinking is cut from its answer."""

    enabled: dict[str, Any] = {}  # fields of the request's body that switch it on
    disabled: dict[str, Any] = {}
    start: Annotated[str, msgspec.Meta(min_length=1)] = "<think>"  # marks in its text
    end: Annotated[str, msgspec.Meta(min_length=1)] = "</think>"


class ModelProfile(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """How the publisher of a model asks it. What a run sets itself takes precedence."""

    about: str
    source: str  # where the publisher says so
    system: str | None = None
    prompts: dict[str, str] = {}  # templates in the place of those of the package, by their names
    parameters: Parameters = Parameters()
    max_pixels: Annotated[int, msgspec.Meta(ge=1)] | None = None
    detail: Detail | None = None
    frames: Annotated[int, msgspec.Meta(ge=1)] | None = None
    frames_per_second: Annotated[float, msgspec.Meta(gt=0)] | None = None
    thinking: Thinking = Thinking()


class UntilConfig(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """When generation may stop before all samples are answered."""

    metric: str = ""  # empty with `better_than`: the metric that leads
    width: Annotated[float, msgspec.Meta(gt=0)] | None = None  # half the width of the interval; None with `better_than`
    better_than: str | None = None  # a run: stop when the interval of the difference excludes zero
    confidence: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.95


class Price(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """What a million tokens of a model cost."""

    input: Annotated[float, msgspec.Meta(ge=0)]
    output: Annotated[float, msgspec.Meta(ge=0)]
    cached_input: Annotated[float, msgspec.Meta(ge=0)] | None = None  # of the endpoint's prompt cache; None: as input
    currency: str = "USD"


class GenerationConfig(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """How the answers of a run are generated. Keys come from the environment and are never part of it."""

    model: str  # PROVIDER:NAME
    base_url: str | None = None  # recorded, and not part of the cache key
    serve: str | None = None  # a command that starts the server of the model, with {model} and {port}
    server: str | None = None  # set by the run: its version
    headers: dict[str, str] = {}  # further headers of requests; $NAME is the value of an environment variable
    key_env: str | None = None  # the name of the environment variable with the key; None: the provider's own
    revision: str | None = None  # of the model
    profile: str | None = None  # how its publisher asks it: the name of a profile, or a file
    profile_content: ModelProfile | None = None  # set by the run: the content of the profile
    thinking: bool | None = None  # whether the model thinks, as the profile says it; None: by its own default
    prompt: str | None = None  # the name of a built-in template, or a file; None: by the task
    template: str | None = None  # set by the run: the text of the template
    system: str | None = None
    schema: str | None = None  # a file with the JSON Schema of the answers
    answer_schema: dict[str, Any] | None = None  # set by the run: the content of that file
    shots: str | None = None  # a file with solved examples
    shot_count: Annotated[int, msgspec.Meta(ge=0)] | None = None  # None: all examples of the file
    history: bool = False  # the samples of a `group` are a dialogue: each request contains the turns before it
    parameters: Parameters = Parameters()
    epochs: Annotated[int, msgspec.Meta(ge=1)] = 1
    answers_per_request: Annotated[int, msgspec.Meta(ge=1)] = 1  # epochs of a sample that are asked at once
    reducers: list[Reducer] = []  # of the epochs of a sample, beside their mean and pass@k
    max_pixels: Annotated[int, msgspec.Meta(ge=1)] | None = None
    detail: Detail | None = None  # of images
    frames: Annotated[int, msgspec.Meta(ge=1)] | None = None  # of a video that is sent as images
    frames_per_second: Annotated[float, msgspec.Meta(gt=0)] | None = None  # of a video; at most `frames` in all
    media_as: MediaAs = "data"  # `url`: the endpoint fetches http addresses itself
    accept_truncated: bool = False
    until: UntilConfig | None = None
    probe: Probe | None = None  # what is changed in the samples, to see what the answers rest on
    captions: str | None = None  # of the probe `caption`: a run whose answers are captions
    # Not part of the signature: how fast, how long, how expensive.
    concurrency: Annotated[int, msgspec.Meta(ge=1)] | None = None  # requests at the same time, at most
    timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None  # seconds per request
    retries: Annotated[int, msgspec.Meta(ge=0)] | None = None
    prices: str | None = None  # a price file
    price: Price | None = None  # set by the run: the price of the model, from the price file
    budget: Annotated[float, msgspec.Meta(gt=0)] | None = None  # in the currency of the prices
    use_cache: bool = True
    retry_failures: bool = False  # ask again for cached answers that are empty or cut off, refusals …
    use_probe: bool = True  # one small request before the run


# Settings of a generation that change no answer; they may change while a run is continued.
CHANGEABLE = (
    *(
        "base_url",
        "headers",
        "serve",
        "key_env",
        "concurrency",
        "timeout",
        "retries",
        "prices",
        "budget",
        "use_cache",
        "use_probe",
        "retry_failures",
    ),
)
