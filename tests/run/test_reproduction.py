"""Ledgers: planted faults are found and named, and the files say what is wrong with them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from multimodal_eval.cli.main import cli
from multimodal_eval.core.errors import ConfigError, ThresholdError
from multimodal_eval.run.reproduction import Reproduced, reproduce
from multimodal_eval.run.reproduction.ledger import OUR_LEDGER, Ledger, read_ledger

RECIPE = """
name: little
data: DATA
metrics: [multiple_choice]
rules: {multiple_choice: mmstar@2024}
options: {multiple_choice: {average: AVERAGE}}
unit: "%"
"""
SIZES = {"art": 12, "biology": 20, "chemistry": 30}
COUNT = sum(SIZES.values())


class World:
    """62 questions in three categories, the answers of two models, and what is published about the first."""

    def __init__(self) -> None:
        self.average, self.data = "micro", "questions.jsonl"
        self.questions: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []
        for category, size in SIZES.items():
            for _ in range(size):
                number = len(self.questions)
                question = {"id": f"q_{number + 1}", "gold": "ABCD"[number * 7 % 4], "category": category}
                self.questions.append(question | {"choices": ["red", "blue", "green", "white"]})
        for model, step in (("parrot", 3), ("lion", 5)):
            for number, question in enumerate(self.questions):
                # The first of every `step` is wrong; in art all are right.
                wrong = number % step == 0 and question["category"] != "art"
                letter = "ABCD"["ABCD".index(question["gold"]) - wrong]
                self.answers.append({"id": question["id"], "model": model, "response": letter, "verdict": not wrong})
        self.entry: dict[str, Any] = {
            "recipe": "little.yaml",
            "answers": "answers.jsonl.gz",
            "questions": "questions.jsonl",
            "model": "parrot",
        }
        # Numbers 12 to 61 have 50 / 3 multiples of three: 12, 15, … 60 are 17. In biology 7.
        self.published: list[dict[str, Any]] = [
            {"figure": "overall", "correct": 45, "total": 62, "value": 72.58, "digits": 2},  # 72.5806
            {"figure": "category=art", "correct": 12, "total": 12},
            {"figure": "category=biology", "correct": 13, "total": 20},
            {"figure": "category=chemistry", "correct": 20, "total": 30},
        ]

    @property
    def parrot(self) -> list[dict[str, Any]]:
        return [row for row in self.answers if row["model"] == "parrot"]

    def only_value(self, value: float, digits: int = 2, **more: Any) -> None:
        self.published = [{"figure": "overall", "value": value, "digits": digits, **more}]

    def reproduced(self, folder: Path) -> Reproduced:
        folder.mkdir(exist_ok=True)
        (folder / "little.yaml").write_text(RECIPE.replace("AVERAGE", self.average).replace("DATA", self.data))
        (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, self.questions)) + "\n")
        text = "\n".join(map(json.dumps, self.answers)) + "\n"
        (folder / "answers.jsonl.gz").write_bytes(gzip.compress(text.encode()))
        ledger = folder / "ledger.yaml"
        ledger.write_text(yaml.safe_dump([{**self.entry, "published": self.published}]))
        return reproduce(ledger).entries[0]


def kinds_of(outcome: Reproduced) -> list[str]:
    """All reasons: those of the first figure that has one come first."""
    kinds: list[str] = [reason.kind for cell in outcome.cells for reason in cell.reasons]
    return kinds + [note.kind for note in outcome.notes]


def test_everything_is_equal(tmp_path):
    outcome = World().reproduced(tmp_path)
    assert outcome.holds
    assert (outcome.status, kinds_of(outcome)) == ("equal", [])
    assert (outcome.compared, outcome.equal_verdicts) == (62, 62)
    assert [(cell.ours.correct, cell.ours.total) for cell in outcome.cells] == [(45, 62), (12, 12), (13, 20), (20, 30)]


def flipped(world: World) -> None:
    world.parrot[20]["verdict"] = not world.parrot[20]["verdict"]


def reversed_verdicts(world: World) -> None:
    for row in world.parrot:
        row["verdict"] = not row["verdict"]


def dropped_category(world: World) -> None:
    world.answers = [row for row in world.answers if int(row["id"][2:]) > SIZES["art"]]


def missing(world: World) -> None:
    del world.answers[5]
    del world.answers[30]


def unknown(world: World) -> None:
    world.answers.append({**world.answers[0], "id": "q_999"})


def shifted(world: World) -> None:
    for row in world.answers:
        row["id"] = f"q_{int(row['id'][2:]) + 1}"


def doubled(world: World) -> None:
    world.answers += world.parrot[12:20]
    world.published = [{"figure": "overall", "correct": 50, "total": 70}]  # 12 to 19 have the faults 12, 15, 18


def another_split(world: World) -> None:
    for row in world.answers:
        row["id"] = f"test_{row['id']}"
    world.answers[0]["id"] = "q_1"


def other_rule(world: World) -> None:
    # mmstar@2024 takes the first letter; a rule that finds the letter after "answer is" reads the gold answer.
    for row, question in zip(world.parrot, world.questions, strict=True):
        if not row["verdict"]:
            row |= {"response": f"Because of this, the answer is ({question['gold']}).", "verdict": True}
    world.published = [{"figure": "overall", "correct": 62, "total": 62}]


def cut(world: World) -> None:
    for number, row in enumerate(world.parrot):
        if not row["verdict"]:
            # The letter that the authors saw is behind the end.
            row |= {"response": f"x{number:02d} it is on the left of", "verdict": True}
    world.published = [{"figure": "overall", "correct": 62, "total": 62}]


def _with_explanations(world: World) -> None:
    for row in world.parrot:
        row["response"] += ". It is the colour that the image shows."
    world.published = [{"figure": "overall", "correct": 62, "total": 62}]


def some_cut_after_25(world: World) -> None:
    _with_explanations(world)
    for number, row in enumerate(world.parrot):
        if not row["verdict"]:
            row |= {"response": f"x{number:02d} it is on the left of it", "verdict": True}


def some_cut_in_the_middle(world: World) -> None:
    _with_explanations(world)
    for number, row in enumerate(world.parrot):
        if not row["verdict"]:
            row |= {"response": f"x it is {'very ' * number}far on the left of", "verdict": True}


def emptied_though_right(world: World) -> None:
    for row in world.parrot[13:15]:
        row["response"] = ""


def more_answers_than_questions(world: World) -> None:
    """Without questions, only the number of rows of the recipe tells."""
    del world.entry["questions"]
    world.data = f"{{source: their files, files: questions.jsonl, rows: {COUNT}}}"
    given = {question["id"]: question for question in world.questions}
    world.answers = [{**given[row["id"]], **row} for row in world.answers]
    world.answers.append({**world.answers[0], "id": "q_999"})


def index_gold(world: World) -> None:
    for question in world.questions:
        question["gold"] = str("ABCD".index(question["gold"]))


def number_gold(world: World) -> None:
    for question in world.questions:
        question["gold"] = str("ABCD".index(question["gold"]) + 1)


def as_fraction(world: World) -> None:
    world.only_value(0.7258, 4)


def macro(world: World) -> None:
    world.only_value(77.22)  # (1 + 13/20 + 20/30) / 3


def micro(world: World) -> None:
    world.average = "macro(category)"
    world.only_value(72.58)


def macro_without_one(world: World) -> None:
    world.average = "macro(category)"
    world.only_value(65.83)  # (13/20 + 20/30) / 2


def rounded_inputs(world: World) -> None:
    world.average = "macro(category)"
    world.only_value(77.33)  # (100 + 65 + 67) / 3


def rounded_twice(world: World) -> None:
    for row in world.parrot[:12]:
        row |= {"response": "-", "verdict": False}
    world.questions, world.answers = world.questions[12:51], world.parrot[12:51]
    # 13 of the 39 are wrong: 66.667; rounded to one digit and then to none. Published 67 is right, so 66 was cut off.
    world.only_value(66, 0)


def typing_error(world: World) -> None:
    world.published[0]["value"] = 75.28


def wrong_count(world: World) -> None:
    world.published[2]["correct"] = 14


def published_without_category(world: World) -> None:
    world.published = [{"figure": "overall", "correct": 33, "total": 50, "value": 66.0}]


def without_empty(world: World) -> None:
    for row in world.parrot[-4:]:  # 58 to 61: 60 was wrong before
        row |= {"response": "", "verdict": False}
    world.published = [{"figure": "overall", "correct": 42, "total": 58}]


def other_model(world: World) -> None:
    # The lion fails at multiples of five from 12 to 61: 15, … 60 are 10.
    world.published = [{"figure": "overall", "correct": 52, "total": 62}]


def drawn(world: World) -> None:
    for row in world.parrot[13:15]:
        row |= {"response": "-", "drawn": True}
    world.published = world.published[:1]


def other_extraction(world: World) -> None:
    for row, question in list(zip(world.parrot, world.questions, strict=True))[13:15]:
        row |= {"response": "- what is left", "extraction": question["gold"]}


def other_labels(world: World) -> None:
    world.questions[12]["category"] = "chemistry"
    # Without the answer at one place, which is wrong, the counts of chemistry are the published ones by chance.
    for number, question in enumerate(world.questions):
        question["place"] = "here" if number == 60 else "there"


def no_question_is_the_same(world: World) -> None:
    for row in world.answers:
        row["id"] = f"test_{row['id']}"


def without_questions_of_a_category(world: World) -> None:
    """As `dropped_category`, but nothing says which questions there are, except the number of rows of the recipe."""
    del world.entry["questions"]
    world.data = f"{{source: their files, files: questions.jsonl, rows: {COUNT}}}"
    given = {question["id"]: question for question in world.questions}
    world.answers = [{**given[row["id"]], **row} for row in world.answers if given[row["id"]]["category"] != "art"]
    world.average = "macro(category)"
    world.published = [{"figure": "overall", "value": 77.22}, {"figure": "category=art", "value": 100.0}]


def swapped_categories(world: World) -> None:
    world.published[1]["figure"], world.published[3]["figure"] = (
        world.published[3]["figure"],
        world.published[1]["figure"],
    )


def emptied(world: World) -> None:
    for row in world.parrot[13:15]:
        row |= {"response": "", "verdict": False}


def rounded_twice_upwards(world: World) -> None:
    # Of the first 47, 12, 15, … 45 are wrong: 35 of 47 are 74.468, first 74.5 and then 75.
    world.questions, world.answers = world.questions[:47], world.parrot[:47]
    world.only_value(75, 0)


def of_the_verdicts_only(world: World) -> None:
    """Another rule gives the published count by chance, against all stored verdicts."""
    world.parrot[12]["response"] = f"Because of this, the answer is ({world.questions[12]['gold']})."
    world.published = [{"figure": "overall", "correct": 46, "total": 62}, *world.published[1:3]]
    world.published[2] = {"figure": "category=biology", "correct": 12, "total": 20}


FAULTS: dict[Callable[[World], None], str] = {
    flipped: "verdicts",
    reversed_verdicts: "reversed verdicts",
    dropped_category: "category",
    missing: "missing ids",
    unknown: "unknown ids",
    shifted: "shifted ids",
    doubled: "doubled ids",
    another_split: "split",
    other_rule: "rule",
    cut: "cut answers",
    some_cut_after_25: "cut answers",
    some_cut_in_the_middle: "cut answers",
    emptied_though_right: "cut answers",
    more_answers_than_questions: "unknown ids",
    index_gold: "gold",
    number_gold: "gold",
    as_fraction: "unit",
    macro: "average",
    micro: "average",
    macro_without_one: "average",
    rounded_inputs: "rounding",
    rounded_twice: "rounding",
    typing_error: "printed value",
    wrong_count: "stored score",
    published_without_category: "category",
    without_empty: "denominator",
    other_model: "model",
    drawn: "draw",
    other_extraction: "extraction",
    other_labels: "labels",
    no_question_is_the_same: "split",
    without_questions_of_a_category: "category",
    swapped_categories: "category",
    emptied: "cut answers",
    rounded_twice_upwards: "rounding",
    of_the_verdicts_only: "stored score",
}


@pytest.mark.slow
def test_planted_faults_are_named(tmp_path):
    wrong = []
    for fault, kind in FAULTS.items():
        world = World()
        fault(world)
        outcome = kinds_of(world.reproduced(tmp_path / fault.__name__))
        if kind not in outcome[:1]:
            wrong.append(f"{fault.__name__}: {outcome} instead of {kind}")
    assert not wrong, "\n".join(wrong)


def test_a_category_with_other_questions_is_not_explained_by_chance(tmp_path):
    world = World()
    other_labels(world)
    assert set(kinds_of(world.reproduced(tmp_path))) == {"labels"}


def test_figures_are_found_however_tables_write_their_names(tmp_path):
    world = World()
    for question in world.questions:
        question["level"] = 1 + list(SIZES).index(question["category"])
    world.published = [
        {"figure": "Category=Biology", "correct": 13, "total": 20},
        {"figure": "level=level3", "correct": 20, "total": 30},
    ]
    assert world.reproduced(tmp_path).status == "equal"
    world.published = [{"figure": "level=4", "correct": 20, "total": 30}]
    (reason,) = world.reproduced(tmp_path).cells[0].reasons
    assert reason.sentence == "no answer has level=4. level has 1, 2, 3"


def test_the_figure_of_a_benchmark_may_be_a_part_of_its_metric(tmp_path):
    """POPE prints F1: yes is said three times, twice rightly, of three: 2 * 2 / (3 + 3)."""
    said = {"1": ("yes", "yes"), "2": ("yes", "Yes."), "3": ("yes", "no"), "4": ("no", "yes"), "5": ("no", "no")}
    rows = [{"id": name, "gold": gold, "response": text} for name, (gold, text) in said.items()]
    (tmp_path / "answers.jsonl").write_text("\n".join(map(json.dumps, rows)))
    published = [{"figure": "overall", "value": 0.6667}]
    entry = {"recipe": "pope-random", "answers": "answers.jsonl", "published": published}
    (tmp_path / "ledger.yaml").write_text(yaml.safe_dump([entry]))
    assert reproduce(tmp_path / "ledger.yaml").entries[0].status == "equal"


@pytest.mark.parametrize(("rule", "correct"), [("mathvista@2023", 1), ("mathvista@2024", 2)])
def test_a_rule_of_a_benchmark_that_extracts_reads_extractions(tmp_path, rule, correct):
    """Of 5 and 5.0, the older rule reads only the first as an integer."""
    rows = [
        {"id": name, "response": f"It is {said}.", "extraction": said, "gold": "5"}
        for name, said in (("a", "5"), ("b", "5.0"))
    ]
    rows = [row | {"question_type": "free_form", "answer_type": "integer"} for row in rows]
    (tmp_path / "answers.jsonl").write_text("\n".join(map(json.dumps, rows)))
    published = [{"figure": "overall", "correct": correct, "total": 2}]
    entry = {"recipe": "mathvista-testmini", "answers": "answers.jsonl", "rule": rule, "published": published}
    (tmp_path / "ledger.yaml").write_text(yaml.safe_dump([entry]))
    outcome = reproduce(tmp_path / "ledger.yaml").entries[0]
    assert (outcome.status, outcome.rule) == ("equal", f"{rule}/extracted")


def test_letters_instead_of_the_texts_of_choices_as_gold_answers_are_named(tmp_path):
    """MathVista's gold answers are texts."""
    rows = [
        {"id": str(number), "response": "", "extraction": letter, "gold": letter, "verdict": True}
        for number, letter in enumerate("ABAB")
    ]
    rows = [row | {"question_type": "multi_choice", "choices": ["red", "blue"]} for row in rows]
    (tmp_path / "answers.jsonl").write_text("\n".join(map(json.dumps, rows)))
    published = [{"figure": "overall", "correct": 4, "total": 4}]
    entry = {"recipe": "mathvista-testmini", "answers": "answers.jsonl", "published": published}
    (tmp_path / "ledger.yaml").write_text(yaml.safe_dump([entry]))
    reason = reproduce(tmp_path / "ledger.yaml").entries[0].cells[0].reasons[0]
    assert reason.sentence == "the gold answers are letters of choices, not their texts"


@pytest.mark.slow
def test_the_answers_that_come_with_the_package_give_the_figures_of_reference_programs():
    """pycocoevalcap, pix2struct, lmms-eval and VLMEvalKit: every value of every answer, and the figures."""
    ledger = read_ledger(OUR_LEDGER)
    entries = [entry for entry in ledger.entries if entry.answers.startswith("answers/")]
    outcome = reproduce(Ledger(OUR_LEDGER, entries))
    assert sum(entry.compared for entry in outcome.entries) == 3 * 400 + 2 * 583 + 584 + 3 * 591
    assert not [
        entry.entry.source
        for entry in outcome.entries
        if entry.status != "equal" or entry.equal_verdicts != entry.compared or entry.notes
    ]


# The file

MESSAGES = {
    "declared: explained": "`why`",
    "declared: nearly": "`declared` must be equal, within rounding or explained",
    "anwsers: x": "no setting is named 'anwsers'. Did you mean 'answers'?",
    "recipe: litle.yaml": "no benchmark is named 'litle.yaml'",
    "answers: answer.jsonl": "Name the folder with --data DIR",
    "model: parot": "Did you mean 'parrot'?",
    "rule: mmstar@2025": "Did you mean 'mmstar@2024'?",
    "columns: {response: reply}": "the files have no column 'reply'",
    "published: []": "`published` is empty",
    "published: [{figure: art}]": "CATEGORY=VALUE",
    "published: [{figure: overall}]": "give `value`, or `correct` and `total`",
    "published: [{correct: 4}]": "give `value`, or `correct` and `total`",
    "published: [{figure: categry=art, value: 3}]": "Did you mean 'category'?",
    "published: [{value: 3, unit: permille}]": "`unit` must be one of %, percent, fraction",
}


def test_mistakes_in_a_ledger_are_named_with_file_and_entry(tmp_path):
    world = World()
    world.reproduced(tmp_path)
    wrong = []
    for change, message in MESSAGES.items():
        ledger = tmp_path / "ledger.yaml"
        ledger.write_text(yaml.safe_dump([{**world.entry, "published": world.published, **yaml.safe_load(change)}]))
        try:
            reproduce(ledger)
        except ConfigError as error:
            if message not in str(error) or "ledger.yaml: entry 1 (" not in str(error):
                wrong.append(f"{change}: {error}")
        else:
            wrong.append(f"{change}: no error")
    assert not wrong, "\n".join(wrong)


def test_columns_are_those_of_the_ledger_and_of_the_recipe(tmp_path):
    """Ids, gold answers and choices have other names in the questions than in the answers."""
    (tmp_path / "little.yaml").write_text(
        "{name: little, data: q.csv, metrics: [multiple_choice], rules: {multiple_choice: mmeval@1}, unit: '%',"
        " columns: {id: nr, expected_answer: key, choices: [first, second]}}"
    )
    (tmp_path / "q.csv").write_text('nr,key,first,second,Area (new)\n7,B,cat,dog,"here, there"\n8,A,cat,dog,x=y\n')
    (tmp_path / "a.tsv").write_text("question\tsaid\tfine\n8\tcat\tCorrect\n7\tA\tWrong\n")
    entry: dict[str, Any] = {"recipe": "little.yaml", "answers": "a.tsv", "questions": "q.csv"}
    entry["columns"] = {"id": "question", "response": "said", "verdict": "fine"}
    values = {"overall": 50.0, "Area (new)=here, there": 0.0, "Area (new)=x=y": 100.0}
    entry["published"] = [{"figure": figure, "value": value} for figure, value in values.items()]
    (tmp_path / "ledger.yaml").write_text(yaml.safe_dump([entry]))
    outcome = reproduce(tmp_path / "ledger.yaml").entries[0]
    assert (outcome.status, outcome.compared, outcome.equal_verdicts) == ("equal", 2, 2)
    recipe = (tmp_path / "little.yaml").read_text()
    (tmp_path / "little.yaml").write_text(recipe.replace("id: nr, ", ""))
    with pytest.raises(ConfigError, match=r"`columns`, id: q.csv has no column 'question'.*It has 'nr', 'key'"):
        reproduce(tmp_path / "ledger.yaml")
    entry["columns"] |= {"id": "nr", "choices": ["second", "first"]}
    (tmp_path / "a.tsv").write_text("nr\tsaid\tfine\n8\tdog\t1\n")
    (tmp_path / "ledger.yaml").write_text(yaml.safe_dump([entry]))
    assert reproduce(tmp_path / "ledger.yaml").entries[0].equal_verdicts == 1  # the first choice is the second column


def test_records_of_vlmevalkit_are_answers(tmp_path):
    """Its columns are index, question, A to D, answer, prediction, and hit of an evaluation."""
    world = World()
    world.reproduced(tmp_path)
    heads = ("index", "question", "A", "B", "C", "D", "category", "answer", "prediction", "hit")
    rows = [heads]
    for question, row in zip(world.questions, world.parrot, strict=True):
        texts = (row["response"], str(int(row["verdict"])))
        rows.append((question["id"], "Which?", *question["choices"], question["category"], question["gold"], *texts))
    (tmp_path / "Parrot_MMStar.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    entry = {"recipe": "little.yaml", "answers": "Parrot_MMStar.tsv", "model": "Parrot", "published": world.published}
    (tmp_path / "ledger.yaml").write_text(yaml.safe_dump([entry]))
    outcome = reproduce(tmp_path / "ledger.yaml").entries[0]
    assert (outcome.status, kinds_of(outcome)) == ("equal", [])
    assert (outcome.compared, outcome.equal_verdicts) == (62, 62)


def test_the_command_exits_with_3_if_something_is_not_as_declared(tmp_path):
    world = World()
    macro(world)
    world.reproduced(tmp_path)
    outcome = CliRunner().invoke(cli, ["reproduce", str(tmp_path / "ledger.yaml"), "--format", "json"])
    assert isinstance(outcome.exception, ThresholdError)
    assert "little.yaml, parrot: declared equal, but different" in str(outcome.exception)
    content = json.loads(outcome.stdout)
    cell = content["entries"][0]["published"][0]
    assert (cell["published"]["value"], cell["ours"]["correct"], cell["ours"]["total"]) == (77.22, 45, 62)
    assert cell["reasons"][0]["kind"] == "average"
    assert content["broken"] == ["little.yaml, parrot"]
    page = tmp_path / "page.html"
    table = CliRunner().invoke(cli, ["reproduce", str(tmp_path / "ledger.yaml"), "-o", str(page)]).stdout
    assert "Published scores, computed again" in page.read_text().partition("<h1>")[2]
    assert "the mean over category is 77.2222, as published" in page.read_text()
    assert "0 of 1 published figure equal; 1 of 1 entries are not what they declare" in table
    assert "the mean over category is 77.2222, as published" in " ".join(table.replace("│", " ").split())
