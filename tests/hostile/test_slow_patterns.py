"""Regular expressions of a run or a configuration match in linear time, and the same texts as in `re`."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import evaluate
from multimodal_eval.core import linear_patterns
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.failures import compiled_patterns
from multimodal_eval.core.linear_patterns import LinearPattern, group_pattern, linear_pattern
from tests.hostile.foreign import edited

SLOW = ["(a+)+$", "(a|a)*b", "(?:a?){40}a{40}b", "(.*,){20}b", "(a*)*b", "(?:a|a)(?:a|a)" * 20 + "b", "a*a*a*a*a*b"]
TEXT = "a" * 5_000 + "!"
ANSWERS = [{"id": str(row), "references": ["a"], "generated_answer": TEXT} for row in range(3)]


@pytest.mark.parametrize("pattern", SLOW)
def test_patterns_that_hang_python(pattern):
    assert not linear_pattern(pattern).match(TEXT)


@pytest.mark.parametrize("command", ["lint", "report"])
def test_a_run_with_a_slow_pattern_opens(tmp_path, command):
    evaluate(ANSWERS, metrics=["rouge_l"], output=tmp_path / "run")
    edited(tmp_path / "run", lambda info: info["config"].update(error_patterns=SLOW))
    (tmp_path / "run" / "lint.json").unlink()
    # In another process: a pattern that hangs cannot be interrupted.
    arguments = [sys.executable, "-m", "multimodal_eval.cli.main", command, str(tmp_path / "run")]
    assert subprocess.run(arguments, timeout=600, capture_output=True, check=False).returncode == 0


def test_a_configuration_with_a_slow_pattern_scores(tmp_path):
    run = evaluate(ANSWERS, metrics=["rouge_l"], error_patterns=[*SLOW, "(x+x+)+y"])
    assert run["rouge_l"]["n_scored"] == 3
    assert (
        evaluate(ANSWERS, metrics=["rouge_l"], error_patterns=["(a+)+!$"], allow_empty=True)["rouge_l"]["n_scored"] == 0
    )


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"(a)\1", "a back-reference"),
        (r"a(?=b)", "look-ahead"),
        (r"(?<!a)b", "negative look-ahead or look-behind"),
        (r"(?>a*)b", "an atomic group"),
        (r"a*+b", "a possessive repeat"),
        (r"(a)?(?(1)b|c)", "a conditional group"),
        (r"(?:ab*){900}", "more than 1,000 states"),
        (r"(?:(?:a{100}b?){100}){100}", "more than 1,000 states"),
        ("(" * 3_000 + ")" * 3_000, "nested too deeply"),
        ("[", "not a regular expression"),
    ],
)
def test_what_is_refused_is_named(pattern, reason):
    with pytest.raises(ConfigError, match="the error pattern") as refused:
        linear_pattern(pattern)
    assert reason in str(refused.value)
    assert pattern[:50] in str(refused.value) or repr(pattern[:50])[1:-1] in str(refused.value)


def test_usual_patterns_are_left_to_re():
    for pattern in (r"\s*\[FAIL\]", r"(?i)sorry, I can(?:no|')t", r".*quota", r"https?://\S+", r"(?:no|none|n/a)$"):
        assert isinstance(linear_pattern(pattern), re.Pattern)
    assert isinstance(linear_pattern(r"\s*error.*timeout"), LinearPattern)


characters = st.sampled_from(
    [
        *"abA \nßſK\u0430",
        *(r"\w", r"\W", r"\s", r"\d", r"\b", r"\B", "^", "$", r"\A", r"\Z", ".", "[ab]", "[^a]", "[a-z]", r"\u0431"),
        *("(?i:a)", "(?i:ß)", "(?i:[s-t])", "(?i:k)", "(?a:\\w)", "(?m:^)", "(?m:$)", "(?s:.)", "(?-i:a)"),
    ]
)
patterns = st.recursive(
    characters,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        inner.map(lambda part: f"({part})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?", "??"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=8,
)


@given(
    patterns, st.sampled_from(["", "(?i)", "(?s)", "(?m)", "(?a)"]), st.text("abAsSßſkK \n,\u0430\u0431", max_size=8)
)
def test_the_same_texts_match_as_in_re(pattern, flags, text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        expected = re.compile(flags + pattern)
        tree = linear_patterns._parser.parse(flags + pattern)
    linear = LinearPattern.of(tree, expected.flags)
    assert linear.match(text) == (expected.match(text) is not None)


@given(st.lists(st.sampled_from(["ab", "b", "a|b", "[ab]"]), min_size=1, max_size=4), st.text("ab", max_size=40))
def test_a_cleared_cache_changes_nothing(parts, text):
    pattern = "".join(f"(?:{part})*" for part in parts) + "$"
    linear = linear_pattern(pattern)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear_patterns, "_KEPT_STEPS", 2)
        assert bool(linear.match(text)) == bool(re.match(pattern, text))


def test_the_patterns_of_the_sets_stay_as_they_are():
    (known,) = compiled_patterns(("\\s*\\[ERROR\\]",))
    assert isinstance(known, re.Pattern)


@pytest.mark.parametrize("pattern", [*SLOW, "(", r"(a)\1", "(.*)(.*)(.*)(.*)"])
def test_groups_only_of_patterns_that_are_fast(pattern):
    with pytest.raises(ConfigError, match=r"could take too long|not a regular expression"):
        group_pattern(pattern)


def test_groups_of_the_paths_of_datasets():
    match = group_pattern("^default/(?:partial-)?(train|test)/.+parquet$").match("default/partial-test/0.parquet")
    assert match is not None
    assert match[1] == "test"
