"""The scripted judge itself: what is planted can be found again, in every form, with and without a JSON Schema."""

from __future__ import annotations

import io
from math import sqrt
from typing import Any

import pytest

from multimodal_eval import Criterion, JudgeConfig, JudgeModel, Run, evaluate
from multimodal_eval.core.errors import NothingScoredError
from tests.golden.clip.images import golden_image
from tests.judges.server import Leanings, judge_server, scripted_judge

FORMS: dict[str, dict[str, Any]] = {
    "scale": {},
    "binary": {},
    "rubric": {
        "criteria": [Criterion(name="true", question="Is it true?"), Criterion(name="brief", question="Brief?")]
    },
    "clair": {},
    "pairwise": {},
    "listwise": {},
}


def rows(count: int, form: str = "") -> list[dict[str, Any]]:
    """Samples with answers of different lengths."""
    samples: list[dict[str, Any]] = []
    for n in range(count):
        answer, other = f"answer {n}" + " so" * (n % 40), f"other {n}" + " so" * (n * 7 % 40)
        sample = {"id": f"s{n}", "question": f"q {n}", "generated_answer": answer, "references": [f"r {n}"]}
        samples.append({**sample, "baseline": [other, f"third {n}"] if form == "listwise" else other})
    return samples


def wilson(count: int, total: int) -> tuple[float, float]:
    """The 95% interval of a share (Wilson 1927)."""
    z, share = 1.959964, count / total
    middle = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z / (1 + z**2 / total) * sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    return middle - half, middle + half


def judged(form: str, leanings: Leanings, count: int = 40, **settings: Any) -> Run:
    config = JudgeConfig(**{"name": "good", "form": form, **FORMS[form], **settings})
    return evaluate(rows(count, form), metrics=[config], judge=scripted_judge(leanings), progress=False)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("structured", [True, False])
def test_every_form_gets_verdicts(form, structured, monkeypatch, tmp_path):
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path))
    model_settings = {"structured": structured, "explain": True, "use_probe": False, **FORMS[form]}
    with judge_server() as server:
        model = JudgeModel(model="openai:tiny", base_url=server.url)
        config = JudgeConfig(name="good", form=form, models=[model], **model_settings)
        run = evaluate(rows(20, form), metrics=[config], progress=False)
        orders = 2 if form in ("pairwise", "listwise") else 1
        assert server.requests == 20 * orders
        has_schemas = [b'"json_schema"' in body for body in server.bodies.values()]
    assert has_schemas == [structured] * 20 * orders
    assert run["good"]["n_scored"] == 20


def test_both_orders_cost_exactly_twice_as_much(monkeypatch, tmp_path):
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path))
    with judge_server(Leanings(flips=0.2)) as server:
        model = JudgeModel(model="openai:tiny", base_url=server.url)

        def asked(**settings: Any) -> int:
            before: int = server.requests
            config = JudgeConfig(name="good", form="pairwise", models=[model], use_probe=False, **settings)
            evaluate(rows(30), metrics=[config], progress=False)
            after: int = server.requests
            return after - before

        assert asked(orders="given", use_cache=False) == 30
        assert asked() == 60  # both orders are the default
        assert asked() == 0  # from the cache


def test_planted_flips_and_the_preferred_place_are_found_again():
    run = judged("pairwise", Leanings(flips=0.3, prefers_first=0.75), 400)
    flips = round(run["good"]["parts"]["flip"]["value"] * 400)
    low, high = wilson(flips, 400)
    assert low <= 0.3 <= high
    # of the pairs that flip, three of four verdicts are for the first; all others have one first and one second
    assert run["good"]["parts"]["first"]["value"] == pytest.approx(0.5 + 0.5 * 0.3 * 0.5, abs=0.05)


def test_longer_answers_win_by_the_planted_length_effect():
    leanings = Leanings(length=3.0)
    run = judged("pairwise", leanings, 400, orders="given")
    wins = sum(run.scores(["good"]).column("good").to_pylist())
    expected = sum(leanings.share(row["generated_answer"], row["baseline"]) for row in rows(400))
    low, high = wilson(round(wins), 400)
    assert low <= expected / 400 <= high


def test_sensitivity_and_specificity_are_found_again():
    leanings = Leanings(sensitivity=0.9, specificity=0.7)
    run = judged("binary", leanings, 600)
    verdicts = run.scores(["good"]).column("good").to_pylist()
    truth = [leanings.quality(row["generated_answer"]) >= 0.5 for row in rows(600)]
    right = [verdict for verdict, is_right in zip(verdicts, truth, strict=True) if is_right]
    wrong = [1 - verdict for verdict, is_right in zip(verdicts, truth, strict=True) if not is_right]
    for verdicts_alike, planted in ((right, 0.9), (wrong, 0.7)):
        low, high = wilson(round(sum(verdicts_alike)), len(verdicts_alike))
        assert low <= planted <= high


def test_repetitions_differ_by_noise_and_nothing_else():
    prompts = [f'<answer x>\na {n}\n</answer x> from 1 to 100 Reply {{"score": 1}}' for n in range(20)]

    def texts(leanings: Leanings, repetition: str) -> list[str | None]:
        return [leanings.reply(prompt, None, repetition).text for prompt in prompts]

    assert texts(Leanings(), "1") == texts(Leanings(), "2")
    assert texts(Leanings(noise=0.1), "1") != texts(Leanings(noise=0.1), "2")


def golden_png():
    stream = io.BytesIO()
    golden_image(0, (8, 8)).save(stream, "PNG")
    return stream.getvalue()


def battles(tmp_path):
    """Captions of one system against two others, on the same image; the numbers are their qualities."""
    image = tmp_path / "image.png"
    image.write_bytes(golden_png())
    qualities = [("big", 0.9, 0.2), ("big", 0.9, 0.4), ("big", 0.1, 0.3), ("small", 0.7, 0.6), ("small", 0.7, 0.65)]
    return [
        {
            "id": str(number),
            "image": str(image),
            "references": ["a red square"],
            "generated_answer": f"a square [quality {ours}]",
            "baseline": f"a shape [quality {theirs}]",
            "baseline_system": system,
        }
        for number, (system, ours, theirs) in enumerate(qualities)
    ]


def test_caparena_auto_with_a_scripted_judge(tmp_path):
    # of big: two wins and a loss of three; of small: two wins of two. CapArena-Auto: 100 (wins - losses) / battles,
    # and the mean over the other systems: (100 / 3 + 100) / 2
    run = evaluate(battles(tmp_path), metrics=["judge:caparena"], judge=scripted_judge(Leanings()), progress=False)
    parts = run["caparena"]["parts"]
    assert 100 * (parts["win"]["value"] - parts["loss"]["value"]) == pytest.approx(100 * 3 / 5)
    shares = run.to_pandas()["caparena"]
    systems = [row["baseline_system"] for row in battles(tmp_path)]
    by_system = {name: [2 * s - 1 for s, each in zip(shares, systems, strict=True) if each == name] for name in systems}
    assert {name: 100 * sum(net) / len(net) for name, net in by_system.items()} == {
        "big": pytest.approx(100 / 3),
        "small": 100,
    }


@pytest.mark.parametrize("judge", ["fleur", "ref_fleur", "clair"])
def test_judges_of_the_literature_with_a_scripted_judge(judge, tmp_path):
    rows = battles(tmp_path)
    run = evaluate(rows, metrics=[f"judge:{judge}"], judge=scripted_judge(Leanings()), progress=False)
    assert run.to_pandas()[judge].tolist() == pytest.approx([0.9, 0.9, 0.1, 0.7, 0.7], abs=0.005)
    if judge != "clair":
        alone = [{key: value for key, value in row.items() if key != "image"} for row in rows]
        with pytest.raises(NothingScoredError, match="no sample has `image`"):
            evaluate(alone, metrics=[f"judge:{judge}"], judge=scripted_judge(Leanings()), progress=False)
