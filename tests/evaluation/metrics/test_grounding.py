"""Boxes and points out of answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Box, Sample, evaluate
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.metric import configured, lone_scorer
from multimodal_eval.core.rules import find_rule, rules_of
from multimodal_eval.evaluation.metrics.boxes import (
    compute_acc_at_iou,
    compute_iou,
    compute_point_in_box,
    intersection_over_union,
)

pytestmark = pytest.mark.property


def sample(answer: str, *boxes: tuple[float, float, float, float], **metadata: object) -> Sample:
    return Sample(id="1", generated_answer=answer, boxes=[Box(box) for box in boxes], metadata=metadata)


@pytest.mark.parametrize(
    ("answer", "corners", "unit"),
    [
        ("[1, 2, 30, 40]", (1, 2, 30, 40), "gold"),
        ("The dog is at (0.1, 0.2, 0.5, 0.6).", (0.1, 0.2, 0.5, 0.6), "fraction"),
        ("[0, 0, 1, 1]", (0, 0, 1, 1), "fraction"),
        ('```json\n[{"bbox_2d": [1, 2, 30, 40], "label": "dog"}]\n```', (1, 2, 30, 40), "gold"),
        ('Sure: {"objects": [{"box": [5, 6, 7, 8]}]} done', (5, 6, 7, 8), "gold"),
        ("<ref>dog</ref><box>(100,200),(300,400)</box>", (100, 200, 300, 400), "thousandth"),
        ("<|box_start|>(100,200),(300,400)<|box_end|>", (100, 200, 300, 400), "thousandth"),
        ("(10, 20), (30, 40)", (10, 20, 30, 40), "gold"),
    ],
)
def test_our_rule_reads_the_common_forms(answer, corners, unit):
    assert find_rule("box", "mmeval@1").function(answer) == [(corners, unit)]


@pytest.mark.parametrize(
    "answer", ["", "no box", "[1, 2, 3, 4, 5]", "[1, 2, 3]", '{"bbox": [1, 2, 3, "x"]}', "[[" * 5000]
)
def test_an_answer_without_a_box_is_unread(answer):
    assert find_rule("box", "mmeval@1").function(answer) == []
    score = compute_iou.function(sample(answer, (0, 0, 10, 10)))
    assert (score.value, score.status, score.warning) == (0, "ok", "unread")


# lmms-eval 0.7.3: parse_float_sequence_within of refcoco and screenspot, _parse_pred_boxes of refcoco_grounding.
@pytest.mark.parametrize(
    ("answer", "refcoco", "screenspot", "grounding"),
    [
        ("[0.1, 0.2,0.3, 0.4]", [0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4], [[0.1, 0.2, 0.3, 0.4]]),
        ("[0, 0, 1, 1]", [0, 0, 1, 1], [0, 0, 1, 1], [[0, 0, 1, 1]]),  # the whole image
        ("(100, 200, 300, 400)", None, [0.1, 0.2, 0.3, 0.4], [[100, 200, 300, 400]]),
        ("1 2 3 4 then 5,6,7,8", None, None, [[1, 2, 3, 4], [5, 6, 7, 8]]),
        ('{"bbox": [1, 2, 3, 4], "box": [5, 6, 7, 8]}', [1, 2, 3, 4], [0.001, 0.002, 0.003, 0.004], [[1, 2, 3, 4]]),
        ("[1, 2, 3, 4, 5]", None, None, [[1, 2, 3, 4]]),
        ("nothing", None, None, []),
    ],
)
def test_the_rules_of_lmms_eval(answer, refcoco, screenspot, grounding):
    def read(name: str) -> list[list[float]]:
        factor = {"gold": 1, "fraction": 1, "thousandth": 1000}
        boxes = find_rule("box", f"lmms-eval@0.7.3/{name}").function(answer)
        return [[number / factor[unit] for number in corners] for corners, unit in boxes]

    assert read("refcoco") == ([] if refcoco is None else [refcoco])
    assert read("screenspot") == ([] if screenspot is None else [pytest.approx(screenspot)])
    assert read("refcoco_grounding")[::2] == grounding


def test_overlap_by_hand():
    # 5 x 5 of 100 + 100 - 25
    assert compute_iou(sample("[5, 5, 15, 15]", (0, 0, 10, 10))) == pytest.approx(25 / 175)
    assert compute_iou(sample("no box", (0, 0, 10, 10))) == 0
    score = compute_iou.function(sample("[5, 5, 15, 15]", (0, 0, 10, 10)))
    assert score.value == pytest.approx(25 / 175)
    assert score.details == {"read": [5, 5, 15, 15]}


def test_units_of_the_answer_and_of_the_gold_boxes():
    gold = (10, 20, 30, 40)
    assert compute_iou.function(sample("[0.1, 0.2, 0.3, 0.4]", gold, width=100, height=100)).value == pytest.approx(1)
    assert compute_iou.function(sample("<box>(100,200),(300,400)</box>", (0.1, 0.2, 0.3, 0.4))).value == pytest.approx(
        1
    )
    missing = compute_iou.function(sample("[0.1, 0.2, 0.3, 0.4]", gold))
    assert missing.status == "missing_input"
    assert "`width` and `height`" in missing.reason
    both = sample("[100, 200, 300, 400]", gold, image_width="100", image_height="100")
    score = configured(compute_iou, {"rule": "lmms-eval@0.7.3/refcoco_grounding"})
    assert lone_scorer(score).score([both])[0].value == pytest.approx(1)


def test_accuracy_at_thresholds():
    # The overlap is 1/2: 50 of 100
    score = compute_acc_at_iou.function(sample("[0, 0, 10, 5]", (0, 0, 10, 10)))
    assert score.value == 1
    assert score.parts == {"at_10": 1, "at_30": 1, "at_50": 1, "at_70": 0, "at_90": 0}
    assert compute_acc_at_iou.function(sample("[0, 0, 10, 5]", (0, 0, 10, 10)), threshold=0.51).value == 0
    with pytest.raises(ConfigError, match="threshold"):
        compute_acc_at_iou.function(sample("[0, 0, 10, 5]", (0, 0, 10, 10)), threshold=0)


@pytest.mark.parametrize(
    ("answer", "rule", "value"),
    [
        ("(15, 25)", "mmeval@1", 1),
        ("Click [10, 20].", "mmeval@1", 1),  # the edge belongs to the box
        ("(9, 25)", "mmeval@1", 0),
        ('<point x="15" y="25" alt="dog">dog</point>', "mmeval@1", 1),
        ('<point x="15" y="25" alt="dog">dog</point>', "molmo@2024", 1),
        ("(0.15, 0.25)", "lmms-eval@0.7.3/pointbench", 1),
        ("(150, 250)", "lmms-eval@0.7.3/pointbench", 1),
        ("[0.1, 0.2, 0.2, 0.3]", "lmms-eval@0.7.3/refcoco_center", 1),
        ("(100, 200, 200, 300)", "lmms-eval@0.7.3/screenspot_center", 1),
        ("nothing", "lmms-eval@0.7.3/refcoco_center", 0),
        ("nothing", "mmeval@1", 0),
    ],
)
def test_points(answer, rule, value):
    scorer = lone_scorer(configured(compute_point_in_box, {"rule": rule}))
    assert scorer.score([sample(answer, (10, 20, 30, 40), width=100, height=100)])[0].value == value


NUMBERS = st.floats(-50, 50, allow_nan=False).map(lambda number: round(number, 3))
BOXES = st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS).map(
    lambda box: (min(box[0], box[2]), min(box[1], box[3]), max(box[0], box[2]), max(box[1], box[3]))
)


@given(BOXES, BOXES, NUMBERS)
def test_overlap_is_symmetric_bounded_and_moves_with_the_boxes(first, second, shift):
    value = intersection_over_union(first, second)
    assert 0 <= value <= 1
    assert intersection_over_union(second, first) == value
    moved = [tuple(number + shift for number in box) for box in (first, second)]
    assert intersection_over_union(*moved) == pytest.approx(value, abs=1e-6)
    has_area = first[2] > first[0] and first[3] > first[1]
    assert intersection_over_union(first, first) == (1 if has_area else 0)


@given(st.text(max_size=60), st.sampled_from([(f, n) for f in ("box", "point") for n in rules_of(f)]))
def test_no_answer_breaks_a_rule(answer, rule):
    find_rule(*rule).function(answer)


def test_a_run_reads_the_size_from_its_columns(tmp_path):
    rows = [
        {
            "id": "1",
            "prediction": "<box>(100,200),(300,400)</box>",
            "boxes": [[10, 20, 30, 40]],
            "width": 100,
            "height": 100,
        },
        {"id": "2", "prediction": "none", "boxes": [[10, 20, 30, 40]], "width": 100, "height": 100},
    ]
    run = evaluate(rows, metrics=["iou", "acc_at_iou", "point_in_box"], output=tmp_path / "run")
    assert run["iou"]["value"] == pytest.approx(0.5)
    assert run["acc_at_iou"]["value"] == 0.5
    assert run["point_in_box"]["value"] == 0.5
    assert run.results["metrics"]["iou"]["warnings"] == {"unread": 1}
    assert run.results["metrics"]["iou"]["signature"].startswith("iou|v:1|rule:mmeval@1")
