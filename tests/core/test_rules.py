from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pytest

from multimodal_eval import Sample, evaluate, metric
from multimodal_eval.core.errors import ConfigError, DuplicateNameError, UnknownNameError
from multimodal_eval.core.metric import configured, signature_of
from multimodal_eval.core.rules import RuleFamily, find_rule, rule, rules_named, rules_of
from multimodal_eval.evaluation.cards import rule_card
from multimodal_eval.evaluation.metrics_registry import resolve
from tests.registry_state import restored_registries


@pytest.fixture(autouse=True)
def _registries() -> Iterator[None]:
    with restored_registries():
        yield


def declare() -> None:
    @rule("loudness", "quiet@1", origin="a test")
    def quiet(text: str) -> str:
        """The text in lower case.

        Nothing else is changed.
        """
        return text.lower()

    @rule("loudness", "loud@1", origin="a test")
    def loud(text: str) -> str:
        """The text in upper case."""
        return text.upper()

    @metric("loudness", version="1", needs=("generated_answer",), bounds=(0, 1), placement="thread")
    def compute(
        sample: Sample, *, rule: Annotated[str, "how texts are changed", RuleFamily("loudness")] = "quiet@1"
    ) -> float:
        """Whether the rule leaves the answer as it is."""
        answer = sample.generated_answer or ""
        return float(find_rule("loudness", rule).function(answer) == answer)


def test_a_rule_is_found_by_family_and_name() -> None:
    declare()
    assert list(rules_of("loudness")) == ["quiet@1", "loud@1"]
    assert find_rule("loudness", "loud@1").function("a") == "A"
    assert [named.family for named in rules_named("loud@1")] == ["loudness"]
    with pytest.raises(UnknownNameError, match=r"rule of loudness.*'lod@1'.*loud@1"):
        find_rule("loudness", "lod@1")
    with pytest.raises(UnknownNameError, match="family of rules"):
        rules_of("softness")


def test_the_rule_is_part_of_the_signature_with_the_code_of_a_plugin() -> None:
    declare()
    samples = [Sample(id="1", generated_answer="a b"), Sample(id="2", generated_answer="A")]
    run = evaluate(samples, metrics=["loudness"], options={"loudness": {"rule": "loud@1"}})
    code = find_rule("loudness", "loud@1").code
    assert code is not None
    assert f"|rule:loud@1+{code}|" in run.results["metrics"]["loudness"]["signature"]
    assert run["loudness"]["value"] == 0.5
    assert "rule:quiet@1+" in str(signature_of(resolve("loudness")))


def test_an_unknown_rule_is_refused_before_anything_is_scored() -> None:
    declare()
    with pytest.raises(UnknownNameError, match="lout@1"):
        configured(resolve("loudness"), {"rule": "lout@1"})
    with pytest.raises(ConfigError, match="must be a rule: quiet@1, loud@1"):
        configured(resolve("loudness"), {"rule": 3})


@pytest.mark.parametrize("name", ["quiet", "quiet @1", "a|b@1", "a,b@1"])
def test_a_name_needs_a_version_and_no_separators(name: str) -> None:
    with pytest.raises(ConfigError, match="ORIGIN@VERSION"):
        rule("loudness", name, origin="a test")(declare)


def test_a_rule_needs_a_docstring_and_a_name_of_its_own() -> None:
    declare()
    declare()  # the same definition again
    with pytest.raises(ConfigError, match="docstring"):
        rule("loudness", "other@1", origin="a test")(lambda text: text)
    with pytest.raises(DuplicateNameError, match="quiet@1"):
        rule("loudness", "quiet@1", origin="a test")(resolve)


def test_the_card_of_a_rule_says_origin_metrics_and_neighbours() -> None:
    declare()
    card = rule_card("quiet@1")
    assert "The text in lower case.\n\nNothing else is changed." in card
    assert "Origin: a test" in card
    assert "`loudness` (`rule`)" in card
    assert "`loud@1`" in card
    with pytest.raises(UnknownNameError, match="quiet@1"):
        rule_card("quite@1")


def test_a_plugin_file_adds_a_rule(tmp_path: Path) -> None:
    from multimodal_eval.core.registry import load_plugin

    file = tmp_path / "mine.py"
    file.write_text(
        "from multimodal_eval import rule\n"
        "@rule('loudness', 'mine@1', origin='my lab')\n"
        "def mine(text: str) -> str:\n"
        "    'The text as it is.'\n"
        "    return text\n"
    )
    load_plugin(file)
    assert find_rule("loudness", "mine@1").function("x") == "x"
