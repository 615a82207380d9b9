"""What the examples of each command need, and those that are not run.

The examples are those of the help (`multimodal_eval/cli/examples.py`). Those of one command run in one folder, in their
order. A command that is not in `NEEDS` fails a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from multimodal_eval.cli.examples import EXAMPLES

FENCE = "`````"  # longer than those in outputs
DOWNLOADS = "downloads files"
MODELS = "needs models that `mmeval fetch` downloads"
SERVES = "serves pages until it is stopped"
LANGUAGES = {"csv": "csv", "py": "python", "yaml": "yaml"}

METRIC = '''from multimodal_eval import Sample, metric


@metric("my_metric", needs=("generated_answer",), bounds=(0, 1), version="1")
def compute_my_metric(sample: Sample, *, target: int = 10) -> float:
    """1 for an answer of `target` words or fewer, less for longer ones."""
    return min(1.0, target / max(1, len(sample.generated_answer.split())))
'''
RULE = '''from multimodal_eval import rule


@rule("anls", "my-lab@1", origin="our annotation guide")
def whole_words(answer: str, reference: str) -> float:
    """The share of the reference's words that the answer has."""
    words = reference.lower().split()
    return sum(word in answer.lower().split() for word in words) / len(words)
'''
WEIGHTS = """tasks:
  captions:
    metrics: [rouge_l, bleu]
    weights: {rouge_l: 0.5, bleu: 0.5}
"""
LABELS = """id,annotator1,annotator2,annotator3
1,dog,dog,dog
2,cat,cat,dog
3,dog,dog,
4,bird,cat,bird
5,cat,cat,cat
6,bird,bird,bird
"""
LEDGER = """- recipe: mmstar
  answers: answers.csv
  model: parrot
  published:
    - {figure: overall, correct: 2, total: 3, value: 66.7}
    - {figure: category=math, correct: 1, total: 2}
"""
PUBLISHED_ANSWERS = """id,model,category,response,gold,verdict
1,parrot,math,A,A,1
2,parrot,math,B,C,0
3,parrot,charts,D,D,1
"""
RATINGS = """id,who,grade
1,ann,4
1,bob,4
2,ann,2
2,bob,3
3,ann,5
3,bob,5
4,ann,1
4,bob,2
"""


@dataclass(frozen=True, slots=True)
class Needs:
    """What the examples of a command need. The page shows `files`; `not_run` and `exits` are by the example."""

    setups: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    not_run: Mapping[str, str] = field(default_factory=dict)  # the reason
    exits: Mapping[str, int] = field(default_factory=dict)


PAIR = "captions:a=alba captions:b=boreas"
RANKED = "judge rank runs/a runs/b runs/c --judge openai:NAME -o runs/ranking"
NEEDS: dict[str, Needs] = {
    "": Needs(("files captions:answers.jsonl",), not_run={"mmeval demo --fetch": DOWNLOADS}),
    "run": Needs(("hosted-models questions", "stopped-run")),
    "score": Needs(
        ("score-files", "coco-files"),
        not_run={"mmeval score answers.jsonl --task captioning": MODELS},
    ),
    "import": Needs(("logs lm-eval:results lmms-eval:logs",)),
    "rescore": Needs(("runs composite:first",), {"weights.yaml": WEIGHTS}),
    "compare": Needs(
        (
            "runs captions:first=alba captions:second=boreas",
            f"runs {PAIR} captions:c=mixed",
            "runs captions:old=boreas captions:new=alba",
            "runs composite:runs/composed/a=alba composite:runs/composed/b=boreas",
        )
    ),
    "table": Needs(("runs captions:first=alba captions:second=boreas", "suites paper")),
    "power": Needs(("runs captions:first=alba captions:second=boreas",)),
    "crosswalk": Needs(("runs choices:first", "files questions:answers.jsonl captions:captions.jsonl")),
    "report": Needs(("runs captions:first=alba captions:second=boreas",)),
    "export": Needs(
        ("runs captions:first=alba captions:second=boreas",),
        not_run={
            "mmeval export runs/first --to mlflow -o tracked": "needs the extra `[mlflow]`; `.ci/long trackers` runs it"
        },
    ),
    "judge": Needs(("judged-runs", f"runs {PAIR}", "hosted-models")),
    "judge pairs": Needs((f"runs {PAIR}", "files captions:human.jsonl=mixed", "hosted-models")),
    "judge rank": Needs(
        (
            f"runs {PAIR} captions:c=mixed",
            "runs captions:systems/a=alba captions:systems/b=boreas captions:systems/c=mixed",
            "hosted-models",
        )
    ),
    "judge ratings": Needs(
        (
            f"runs {PAIR} captions:c=mixed captions:d=boreas",
            "hosted-models",
            f"command {RANKED}",
            "command judge pairs runs/a runs/d --judge openai:NAME -o runs/a-against-d",
        )
    ),
    "judge plan": Needs(("judged-runs",)),
    "judge calibrate": Needs(("judged-runs",)),
    "meta": Needs(("files judged:judged.csv", "runs judged:first")),
    "agree": Needs((), {"labels.csv": LABELS, "ratings.csv": RATINGS}),
    "clarity": Needs(("clarity-files",)),
    "clarity score": Needs(("clarity-files",)),
    "clarity check-submission": Needs(("clarity-files",)),
    "dialogue": Needs(
        ("dialogue-files alba",),
        not_run=dict.fromkeys(EXAMPLES["dialogue ppl"], MODELS),
    ),
    "dialogue score": Needs(("dialogue-files alba",)),
    "dialogue ppl": Needs(not_run=dict.fromkeys(EXAMPLES["dialogue ppl"], MODELS)),
    "dialogue generate": Needs(("dialogue-files", "hosted-models dialogues")),
    "dialogue run": Needs(("dialogue-files", "hosted-models dialogues")),
    "leaderboard": Needs(("dialogue-files", "coco-files submissions")),
    "view": Needs(not_run=dict.fromkeys(EXAMPLES["view"], SERVES)),
    "lint": Needs(("runs captions:first",)),
    "validate": Needs(("score-files",)),
    "reproduce": Needs(
        files={"paper.yaml": LEDGER, "answers.csv": PUBLISHED_ANSWERS},
        not_run=dict.fromkeys(
            (line for line in EXAMPLES["reproduce"] if "--data" in line), "needs the published answers"
        ),
    ),
    "verify": Needs(("runs captions:first captions:second",)),
    "demo": Needs(not_run={"mmeval demo --fetch": DOWNLOADS, "mmeval demo -o demo-runs": MODELS}),
    "ls": Needs(("runs captions:first=alba captions:second=boreas",)),
    "ls benchmarks": Needs(),
    "ls formats": Needs(),
    "ls judges": Needs(),
    "ls metrics": Needs((), {"my_metric.py": METRIC}),
    "ls models": Needs(),
    "ls prompts": Needs(),
    "ls tasks": Needs(),
    "ls rules": Needs((), {"my_rules.py": RULE}),
    "ls runs": Needs(("runs captions:first=alba captions:second=boreas captions:experiments/2024/third",)),
    "ls resources": Needs(),
    "ls schema": Needs(),
    "card": Needs((), {"my_metric.py": METRIC}),
    "fetch": Needs(
        not_run=dict.fromkeys(EXAMPLES["fetch"][:3], DOWNLOADS),
        exits={"mmeval fetch ruwordnet": 1},
    ),
}


def faults() -> list[str]:
    """What is wrong with the table, and what to do."""
    here = "tools/site/generated/command_examples.py"
    missing = [
        f"the examples of `mmeval {path}` have no entry. Add {path!r} to NEEDS in {here}, with the setups they need"
        for path in EXAMPLES
        if path not in NEEDS
    ]
    unknown = [
        f"{here} names `{example}`, which is not an example of `mmeval {path}`. Correct or remove it"
        for path, needs in NEEDS.items()
        for example in (*needs.not_run, *needs.exits)
        if example not in EXAMPLES.get(path, ())
    ]
    return missing + unknown


def examples_section(path: str) -> str:
    """The examples of a command, as blocks that can be executed; "" if it has none."""
    if path not in EXAMPLES:
        return ""
    needs = NEEDS.get(path, Needs())
    setups = f"<!-- setup: {', '.join(needs.setups)} -->\n" if needs.setups else ""
    parts = [f"## Examples\n\n{setups}{_about(path, needs)}\n"]
    for name, text in needs.files.items():
        parts.append(f"`{name}`:\n\n```{LANGUAGES[name.rpartition('.')[2]]}\n{text}```\n")
    return "\n".join([*parts, *(_block(example, needs) for example in EXAMPLES[path])])


def _about(path: str, needs: Needs) -> str:
    """Where the examples were executed."""
    executed = [example for example in EXAMPLES[path] if example not in needs.not_run]
    if not executed:
        return ""
    order = ", one after the other" if len(executed) > 1 else ""
    place = ", in a folder with small files" if needs.setups or needs.files else ""
    text = f"Executed when this site was built{order}{place}."
    if any(setup.startswith("hosted-models") for setup in needs.setups):
        text += " The models were a server on the same machine, with prepared answers."
    return f"\n{text}\n"


def _block(example: str, needs: Needs) -> str:
    """The command and an empty output. The comment separates it from the block before."""
    if example in needs.not_run:
        return f"<!-- not run: {needs.not_run[example]} -->\n    {example}\n"
    status = needs.exits.get(example, 0)
    note = f"\nThe exit code is {status}.\n" if status else ""
    return f"<!-- exit: {status} -->\n    {example}\n\n{FENCE}\n{FENCE}\n{note}"
