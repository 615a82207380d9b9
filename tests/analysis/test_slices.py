"""Columns for slices and strata that cannot be used are refused before anything is scored."""

from __future__ import annotations

import pytest

from multimodal_eval.analysis.slices import MAX_SLICES, ColumnsSeen, slice_value
from multimodal_eval.core.config import RunConfig, StrataConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.sample import Sample


def sample(number, group=None, **metadata):
    return Sample(id=str(number), group=group, metadata=metadata)


def strata(**weights):
    return ColumnsSeen(RunConfig(strata=StrataConfig(by="site", weights=weights)))


def test_values_are_texts():
    assert slice_value(sample(1, "g", year=2024), "year") == "2024"
    assert slice_value(sample(1, "g", year=2024), "group") == "g"
    assert slice_value(sample(1), "year") == "(none)"


def test_a_column_has_at_most_200_values():
    seen = ColumnsSeen(RunConfig(by=["n"]))
    seen.see([sample(number, n=number) for number in range(MAX_SLICES)])
    with pytest.raises(ConfigError, match="--by n: the column has more than 200 values"):
        seen.see([sample(0, n="another")])


def test_values_of_several_parts_count_together():
    first, second = ColumnsSeen(RunConfig(by=["n"])), ColumnsSeen(RunConfig(by=["n"]))
    first.see([sample(number, n=number) for number in range(MAX_SLICES)])
    assert first.add(second)
    second.see([sample(0, n="another")])
    assert not first.add(second)


def test_unknown_columns_are_named():
    seen = ColumnsSeen(RunConfig(by=["colour"]))
    with pytest.raises(ConfigError, match=r"--by colour: no sample has that column\. Known: group, site"):
        seen.check_columns(["site", "group"])
    seen.check_columns(["colour"])


def test_strata_and_weights_must_match():
    seen = strata(a=1.0, b=0.0)
    seen.see([sample(1, site="a"), sample(2, "g", site="a"), sample(3, "g", site="a")])
    seen.check_columns([])  # b has no weight, and needs no sample
    seen.see([sample(4, site="c")])
    with pytest.raises(ConfigError, match="strata: site 'c' has no weight"):
        seen.check_columns([])
    empty = strata(a=0.5, b=0.5)
    empty.see([sample(1, site="a")])
    with pytest.raises(ConfigError, match="strata: no sample has the site 'b', but it has a weight"):
        empty.check_columns([])


def test_a_group_is_in_one_stratum():
    seen = strata(a=0.5, b=0.5)
    seen.see([sample(1, "g", site="a"), sample(2, "h", site="b"), sample(3, "g", site="b")])
    with pytest.raises(ConfigError, match="strata: the group 'g' has samples with more than one site"):
        seen.check_columns([])
    whole, other = strata(a=0.5, b=0.5), strata(a=0.5, b=0.5)
    whole.see([sample(1, "g", site="a")])
    other.see([sample(2, "g", site="b")])
    assert not whole.add(other)
