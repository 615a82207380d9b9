"""The declaration and the checks of options."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from pickle import dumps, loads
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from multimodal_eval import Metric, Sample, Score, metric
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.function_metric import FunctionMetric
from multimodal_eval.core.metric import configured, declared_options, known_options, signature_of
from multimodal_eval.core.options import Name, Option, Options, options_of


class Counted(Metric):
    name = "counted"
    options = Options(
        unit=Option(str, "words", choices=("words", "letters"), help="what is counted"),
        most=Option(int, 10, help="where counting ends"),
        least=Option(int | None, None),
        model=Option(Name, "default"),
    )

    def settle(self) -> None:
        if self.options["least"] is not None and self.options["least"] > self.options["most"]:
            raise ConfigError("`least` must not be above `most`")
        self.needs = ("generated_answer",) if self.options["unit"] == "words" else ("caption",)

    def open(self, state: Any) -> Any:
        return self

    def score(self, batch: Any) -> list[Score]:
        return [Score(float(self.options["most"])) for _ in batch]


class Weighted(Counted):
    options = Options(Counted.options, weight=Option(float, 1.0, help="what a word counts"))


def test_a_class_has_the_declaration_and_an_instance_the_values():
    assert Counted.options["most"].help == "where counting ends"
    assert Counted().options == {"unit": "words", "most": 10, "least": None, "model": "default"}
    assert list(Weighted.options) == [*Counted.options, "weight"]
    assert declared_options(Weighted()) is Weighted.options
    with pytest.raises(TypeError):
        Counted().options["most"] = 3  # type: ignore[index]
    assert str(signature_of(Counted())) == "counted|v:1|unit:words|most:10|least:None|model:default"


def test_configuring_starts_from_the_current_options():
    first = configured(Counted(), {"most": 5})
    assert configured(first, {}).options == first.options
    second = configured(first, {"unit": "letters"})
    assert isinstance(second, Counted)
    assert (second.options["most"], second.options["unit"], second.needs) == (5, "letters", ("caption",))
    assert Counted().options["most"] == 10
    assert first.options["unit"] == "words"


def test_a_changed_metric_keeps_its_attributes_but_not_its_scorer():
    subject = Counted()
    subject.bounds = (0, 99)
    assert subject(Sample(id="1", generated_answer="x")) == 10.0
    changed = configured(subject, {"most": 3})
    assert changed.bounds == (0, 99)
    assert changed(Sample(id="1", generated_answer="x")) == 3.0
    for duplicate in (copy(changed), loads(dumps(changed))):
        assert duplicate.options == changed.options
        assert "_lone_scorer" in vars(changed)
        assert "_lone_scorer" not in vars(duplicate)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mots": 3}, r"counted has no option 'mots'. Did you mean 'most'\? Known: least, model, most, unit"),
        ({"unit": "lines"}, "the option `unit` of counted must be one of words, letters. Got 'lines' instead."),
        ({"unit": ["words"]}, r"must be one of words, letters. Got \['words'\] instead."),
        ({"most": "3"}, "the option `most` of counted must be a whole number. Got '3' instead."),
        ({"most": True}, "must be a whole number. Got True instead."),
        ({"most": 3.0}, "must be a whole number. Got 3.0 instead."),
        ({"least": "x"}, "must be a whole number or null. Got 'x' instead."),
        ({"model": ""}, "must be a name. Got '' instead."),
        ({"model": 3}, "must be a name. Got 3 instead."),
        ({"least": 11}, "`least` must not be above `most`"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        configured(Counted(), options)


def test_a_metric_without_options():
    class Plain(Metric):
        name = "plain"

    assert configured(Plain(), {}).options == {}
    with pytest.raises(ConfigError, match=r"plain has no option 'x'. Known: none"):
        configured(Plain(), {"x": 1})


def test_options_must_be_declared():
    with pytest.raises(TypeError, match=r"Old.options must be Options\(name=Option"):

        class Old(Metric):
            options = {"most": 3}  # type: ignore[assignment]  # noqa: RUF012


def test_known_options():
    assert known_options(Counted(), {"seed": 1, "most": 3}) == {"most": 3}


def test_an_option_may_convert():
    option = Option(str, "1.5", choices=("1.5", "2005"), convert=str)
    assert option.checked("variant", "m", 1.5) == "1.5"
    with pytest.raises(ConfigError, match=r"must be one of 1.5, 2005. Got 1.4 instead"):
        option.checked("variant", "m", 1.4)


def declared(
    sample: Sample,
    corpus: dict[str, int] | None = None,
    *,
    factor: float = 1.0,
    mode: Annotated[Literal["mean", "best"], "which of several counts"] = "mean",
    limit: int = None,  # type: ignore[assignment]  # noqa: RUF013 - a common mistake
    names: tuple[str, ...] = (),
    weights: Mapping[str, float] | None = None,
    anything=None,
) -> float:
    return factor


def test_a_function_declares_its_options_by_its_signature():
    options = options_of(declared)
    assert list(options) == ["factor", "mode", "limit", "names", "weights", "anything"]
    assert (options["mode"].choices, options["mode"].help) == (("mean", "best"), "which of several counts")
    assert [options[name].allowed for name in ("factor", "names", "weights", "anything")] == [
        "a number",
        "a list",
        "a mapping or null",
        "any value",
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"factor": 2},
        {"factor": np.float32(2)},
        {"limit": None},
        {"limit": np.int64(3)},
        {"names": ["a", "b"]},  # a tuple as read from run.json
        {"weights": {"a": 1}},
        {"anything": object()},
        {"mode": "best"},
    ],
)
def test_a_function_takes_what_it_declares(options):
    changed = configured(FunctionMetric(declared, "declared"), options)
    assert isinstance(changed, FunctionMetric)
    assert changed.options == {**FunctionMetric(declared, "declared").options, **options}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"factor": "2"}, "the option `factor` of declared must be a number. Got '2' instead."),
        ({"factor": False}, "must be a number. Got False"),
        ({"mode": "worst"}, "must be one of mean, best. Got 'worst'"),
        ({"names": "ab"}, "must be a list. Got 'ab'"),
        ({"names": [1]}, r"must be a list. Got \[1\]"),
        ({"weights": {"a": "x"}}, "must be a mapping or null. Got"),
        ({"corpus": {}}, "has no option 'corpus'"),
    ],
)
def test_a_function_refuses_the_rest(options, message):
    with pytest.raises(ConfigError, match=message):
        configured(FunctionMetric(declared, "declared"), options)


def test_unresolvable_annotations_declare_nothing():
    def unreadable(sample: "Nothing", *, factor: float = 1.0) -> float:  # type: ignore[name-defined]  # noqa: F821, UP037
        return factor

    assert configured(FunctionMetric(unreadable, "unreadable"), {"factor": "x"}).options == {"factor": "x"}
    assert options_of(max) == {}


def test_an_annotation_that_is_not_a_type_declares_nothing():
    def odd(sample, factor: [1, 2] = 1):  # type: ignore[valid-type]
        return factor

    odd.__annotations__["factor"] = [1, 2]  # as in a module without postponed annotations
    assert configured(FunctionMetric(odd, "odd"), {"factor": "x"}).options == {"factor": "x"}


def test_a_plain_function_accepts_anything():
    @metric("plain_function")
    def plain(sample, factor=1):
        return factor

    assert configured(plain, {"factor": "high"}).options == {"factor": "high"}
