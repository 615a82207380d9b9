"""What is known about the judges of a run: the content of judges.json, which the report and the commands show."""

from collections.abc import Sequence

import msgspec

from multimodal_eval.core.display import Displayed
from multimodal_eval.core.figure import Figure

__all__ = [
    "JUDGES_FORMAT",
    "Agreement",
    "Calibration",
    "CurvePoint",
    "Flips",
    "JudgeFindings",
    "JudgesReport",
    "Length",
    "PanelMember",
    "Rate",
    "Variance",
    "measures_the_judge",
    "rates_by_the_judge",
]

JUDGES_FORMAT = 1


def measures_the_judge(names: Sequence[str], *, is_compared: bool = False) -> str:
    """What is said about scores of judges without human labels, on the terminal and in the report.

    `is_compared` are those of judges that compare answers, whose samples the program itself has put together.
    """
    many = len(names) > 1
    what, how = ("pairs", "mmeval judge calibrate RUN --human FILE") if is_compared else ("answers", "--human COLUMN")
    return (
        f"{', '.join(names)}: no human labels, so {'these scores measure' if many else 'this score measures'} what the "
        f"judge says, not the quality of the answers. Labels of some {what} correct {'them' if many else 'it'}: {how}"
    )


def rates_by_the_judge(name: str) -> str:
    """What is said about ratings of systems."""
    return f"{name}: the ratings measure what the judge says, not the quality of the answers"


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """A share with its 95% interval. The value is None if there is nothing to count."""

    count: int
    total: int
    value: float | None
    low: float | None
    high: float | None


class Flips(msgspec.Struct, frozen=True, kw_only=True):
    """What the order of two answers changes."""

    flips: Rate  # pairs whose two verdicts are opposite
    disagreements: Rate  # pairs whose two verdicts differ: flips, and a win or loss beside a tie
    first: Rate  # verdicts, without ties, for the answer that is shown first


class Length(msgspec.Struct, frozen=True, kw_only=True):
    """What the length of an answer changes."""

    longer_wins: Rate  # pairs of different length, without ties
    effect: Figure  # the coefficient of the length difference in the logistic regression
    win_rate: Figure  # as judged
    controlled: Figure  # at equal lengths


class PanelMember(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of the models that judge."""

    model: str  # as it is configured
    mean: Figure
    bias: Figure | None = None  # its mean minus that of the whole panel, over the same samples
    unreadable: int = 0
    failed: int = 0


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """Krippendorff's alpha between the models of a panel, or between repetitions."""

    between: str  # "judges" or "repeats"
    level: str  # of measurement: nominal, ordinal, interval
    alpha: Figure
    units: int


class Variance(msgspec.Struct, frozen=True, kw_only=True):
    """The variance of single verdicts, split into parts."""

    samples: float  # between samples: differences that are there
    judges: float | None  # between models of a panel, and their interaction with samples
    repeats: float | None  # between repetitions of the same question
    stderr_of_samples: float  # the parts of the standard error of the mean
    stderr_of_judge: float


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """Samples with about the same verdict, and what humans say of them."""

    judge: float
    human: float
    low: float
    high: float
    n: int


class Calibration(Displayed, msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A judge's number, corrected by human labels of a part of the samples."""

    column: str  # with the labels
    labels: int
    samples: int
    judge: Figure  # the mean of the verdicts
    human: Figure  # the mean of the labels alone
    corrected: Figure  # PPI++
    power: float  # lambda of PPI++: 0 ignores the judge
    worth: float | None  # labels without a judge that would give the same interval
    agreement: Rate | None = None  # equal labels, if both are categories
    kappa: Figure | None = None
    correlation: Figure | None = None
    sensitivity: Rate | None = None  # of a binary judge
    specificity: Rate | None = None
    classical: Figure | None = None  # PPI with lambda = 1, as in the papers before PPI++
    rogan_gladen: Figure | None = None
    curve: list[CurvePoint] = []
    notes: list[str] = []


class JudgeFindings(Displayed, msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known about the judge of one metric."""

    form: str
    models: list[str]
    questions: int  # that were asked
    unreadable: dict[str, int] = {}  # why verdicts could not be read -> how many
    failed: dict[str, int] = {}  # status of the failures of the endpoint -> how many
    injections: int = 0  # samples whose answer addresses the judge
    flips: Flips | None = None
    length: Length | None = None
    panel: list[PanelMember] = []  # several models
    agreement: list[Agreement] = []
    variance: Variance | None = None
    calibration: Calibration | None = None
    warnings: list[str] = []


class JudgesReport(Displayed, msgspec.Struct, frozen=True, kw_only=True):
    """The content of judges.json."""

    format: int = JUDGES_FORMAT
    metrics: dict[str, JudgeFindings]
