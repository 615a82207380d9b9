"""Queries survive the way through an address, and invalid parameters are errors."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import ConfigError, MultimodalEvalError, UnknownNameError
from multimodal_eval.report.viewer.sample_query import (
    MOST_VALUES,
    SEARCHED,
    STATUSES,
    VIEWS,
    SampleQuery,
    active_filters,
    may_repeat,
    read_query,
    without_filters,
)

NAMES = ["bleu", "bleu.bleu_1", "a&b=c", "min.x", "über"]

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
limits = st.none() | st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def queries(draw: st.DrawFn) -> SampleQuery:
    text = draw(texts).strip()
    metrics = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
    ranges = [(name, draw(limits), draw(limits)) for name in metrics]
    values = st.lists(texts.filter(bool), min_size=1, max_size=4, unique=True)
    return SampleQuery(
        text=text,
        field=draw(st.sampled_from(sorted(SEARCHED))) if text else "answer",
        status=draw(st.sampled_from(["", *STATUSES])),
        ranges=tuple(limits for limits in ranges if limits[1:] != (None, None)),
        metadata=tuple(
            (key, tuple(chosen)) for key, chosen in draw(st.dictionaries(texts, values, max_size=4)).items()
        ),
        sort=draw(st.sampled_from(["", *NAMES])),
        descending=draw(st.booleans()),
        offset=draw(st.integers(0, 10**12 - 1)),
        view=draw(st.sampled_from(VIEWS)),
    )


def read(address: str) -> SampleQuery:
    return read_query(parse_qsl(address, keep_blank_values=True), NAMES)


@given(queries())
def test_a_query_survives_its_address(query: SampleQuery):
    assert read(query.address()) == query


@given(queries())
def test_each_filter_can_be_removed(query: SampleQuery):
    filters = active_filters(query)
    assert query.is_filtered == bool(filters)
    for number, active in enumerate(filters):
        rest = active_filters(active.without)
        assert [(f.subject, f.condition) for f in rest] == [
            (f.subject, f.condition) for f in (*filters[:number], *filters[number + 1 :])
        ]
        assert active.without.offset == 0
        assert (active.without.sort, active.without.view) == (query.sort, query.view)
    assert not without_filters(query).is_filtered


@given(st.lists(st.tuples(st.sampled_from(["q", "meta", "value", "meta.a", "min.bleu", "view", "sort"]), texts)))
def test_any_parameters_are_a_query_or_an_error(parameters: list[tuple[str, str]]):
    try:
        query = read_query(parameters, NAMES)
    except MultimodalEvalError:
        return
    assert read(query.address()) == query


def test_values_of_a_key_are_alternatives_and_empty_ones_are_ignored():
    query = read("meta.language=en&meta.place=3&meta.language=ru&meta.language=en&meta.split=&meta.=x")
    assert query.metadata == (("language", ("en", "ru")), ("place", ("3",)), ("", ("x",)))
    assert [f"{f.subject} {f.condition}" for f in active_filters(query)] == [
        "language is en or ru",
        "place is 3",
        " is x",
    ]


def test_the_addresses_of_earlier_versions_are_read():
    assert read("meta=language&value=en").metadata == (("language", ("en",)),)
    assert read("meta=language&value=").metadata == ()
    assert read("value=en").metadata == ()


def test_only_values_of_metadata_may_be_repeated():
    assert may_repeat("meta.q")
    assert not any(map(may_repeat, ("q", "meta", "value", "min.bleu", "metadata.x")))


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("view=list", UnknownNameError, "view"),
        ("sort=nothing", UnknownNameError, "sort"),
        ("min.nothing=1", UnknownNameError, "metric"),
        ("min.bleu=x", ConfigError, "must be a number"),
        ("max.bleu=inf", ConfigError, "finite"),
        ("meta.k=%00", ConfigError, "not valid in text"),
        ("meta.%00=v", ConfigError, "not valid in text"),
        (f"meta.{'k' * 501}=v", ConfigError, "at most 500"),
        (f"meta.k={'v' * 501}", ConfigError, "at most 500"),
        ("&".join(f"meta.k={number}" for number in range(MOST_VALUES + 1)), ConfigError, "at most 100 values"),
        ("offset=-1", ConfigError, "non-negative"),
    ],
)
def test_invalid_parameters_are_errors(address: str, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        read(address)
