"""Compare the rules for short answers with the programs that they come from, on random cases.

The programs need packages that the project does not: create the cases in an environment of their own, then check them.

    python3 -m venv V && V/bin/pip install numpy anls==0.0.2 && V/bin/pip install --no-deps lmms-eval==0.7.3 ms-vlmeval
    V/bin/python tests/golden/record_short_answers.py make cases.json 10000 1
    python tests/golden/record_short_answers.py check cases.json
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

WORDS = (
    "Paris paris the a an dog dogs two 2 ten none yes No. no, isn't isnt don't dont somebody'd 10 1,000 1000 5. 0.5 .5 "
    "12% 12 0.12 0 0.0 2010 2099 $5 café Straße İstanbul 你好 да black-white it's its what's, (red) [x] \\boxed{5} - "
    "ＡＢＣ ！"
).split()
SPACES = (" ", " ", " ", "  ", "\n", "\t", "")


def text(draw: random.Random) -> str:
    """A short text, sometimes blank."""
    words = [draw.choice(WORDS) for _ in range(draw.choice((0, 1, 1, 1, 2, 2, 3, 4)))]
    joined = "".join(word + draw.choice(SPACES) for word in words)
    if draw.random() < 0.2:
        joined = joined.rstrip() + draw.choice((".", "!", " .", "x"))
    return joined


def near(draw: random.Random, reference: str) -> str:
    """A text that equals the reference, or almost."""
    kind = draw.random()
    if kind < 0.2:
        return reference
    if kind < 0.4:
        return draw.choice((str.upper, str.lower, str.strip, str.title))(reference)
    if kind < 0.7 and reference:
        place = draw.randrange(len(reference))
        return reference[:place] + draw.choice(("", "x", "é", " ")) + reference[place + draw.randrange(2) :]
    return text(draw)


def number(draw: random.Random) -> str:
    """A number in one of many spellings."""
    value = draw.choice((0, 0.0, 1, 45.06, 2010, 0.58, -5, 1e6)) * draw.choice((1, 1, 1.04, 1.05, 1.0500001, 0.95, -1))
    return draw.choice(("{}", " {}", "{} ", "{}%", "{:.2f}", "{:g}", "The answer is {}", "${}")).format(value)


class Absent(MetaPathFinder, Loader):
    """Replaces packages that the origins import and these functions do not need."""

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        return (
            None if name.split(".")[0] in ("lmms_eval", "vlmeval", "anls") else ModuleSpec(name, self, is_package=True)
        )

    def create_module(self, spec: ModuleSpec) -> Any:
        return MagicMock(name=spec.name, __path__=[], __spec__=spec)

    def exec_module(self, module: ModuleType) -> None:
        pass


def vlmevalkit_rules() -> Any:
    """VLMEvalKit's module of rules, without the rest of the package, which starts models when it is imported."""
    from importlib.util import find_spec, module_from_spec, spec_from_file_location

    package = find_spec("vlmeval")
    assert package is not None
    assert package.origin is not None
    folder = Path(package.origin).parent
    sys.modules["vlmeval"] = MagicMock(name="vlmeval", __path__=[])
    modules = []
    for name in ("smp/misc.py", "dataset/utils/vqa_eval.py"):
        spec = spec_from_file_location("vlmeval." + name.replace("/", ".").removesuffix(".py"), folder / name)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        modules.append(module)
        sys.modules["vlmeval.smp"] = modules[0]
        modules[0].istype = lambda value, kind: True  # type: ignore[attr-defined]
        modules[0].listinstr = lambda names, text: any(name in text for name in names)  # type: ignore[attr-defined]
    return modules[1]


def origins() -> dict[str, Any]:
    """The functions of the origins: (answer, references) -> verdict, by family and rule."""
    sys.meta_path.append(Absent())
    from anls import anls_score  # type: ignore[import-not-found,unused-ignore]
    from lmms_eval.api import metrics as lmms  # type: ignore[import-not-found,unused-ignore]
    from lmms_eval.tasks.chartqa.utils import relaxed_correctness  # type: ignore[import-not-found,unused-ignore]
    from lmms_eval.tasks.ocrbench.utils import ocrbench_process_results  # type: ignore[import-not-found,unused-ignore]
    from lmms_eval.tasks.textvqa.utils import textvqa_process_results  # type: ignore[import-not-found,unused-ignore]
    from lmms_eval.tasks.vqav2.utils import vqav2_process_results  # type: ignore[import-not-found,unused-ignore]

    vqa_eval = vlmevalkit_rules()

    def vlm(answer: str, golds: list[str], method: str, dataset: str) -> float:
        line = {"answer": repr(golds), "prediction": answer}
        return float(vqa_eval.hit_calculate([vqa_eval.process_line(line, method=method)], dataset)[0])

    def vqav2(answer: str, golds: list[str]) -> float:
        people = [{"answer": gold, "answer_id": place} for place, gold in enumerate(golds)]
        return float(vqav2_process_results({"answers": people, "question_id": 0}, [answer])["exact_match"])

    def ocr(answer: str, golds: list[str], dataset: str) -> float:
        doc = {"answer": golds, "dataset": dataset, "question_type": ""}
        return float(ocrbench_process_results(doc, [answer])["ocrbench_accuracy"]["score"])

    def gqa(answer: str, golds: list[str]) -> float:
        ours = lmms.exact_match_hf_evaluate([answer], [golds[0]], ignore_case=True, ignore_punctuation=True)
        return float(ours["exact_match"])

    return {
        "anls anls@2019": anls_score,
        "anls lmms-eval@0.7.3/anls": lambda answer, golds: lmms.anls(golds, [answer])["anls"],
        "anls vlmevalkit@e8e78f05/anls": lambda answer, golds: vlm(answer, golds, "anls", "DocVQA"),
        "relaxed lmms-eval@0.7.3/chartqa": lambda answer, golds: float(relaxed_correctness(answer, golds[0])),
        "relaxed vlmevalkit@e8e78f05/relaxed": lambda answer, golds: vlm(
            answer, golds[:1], "relaxed_accuracy", "ChartQA"
        ),
        "vqa lmms-eval@0.7.3/vqav2": vqav2,
        "vqa lmms-eval@0.7.3/textvqa": lambda answer, golds: float(
            textvqa_process_results({"answers": list(golds), "question_id": 0}, [answer])["exact_match"]
        ),
        "vqa vlmevalkit@e8e78f05/vqa_score": lambda answer, golds: vlm(answer, golds, "vqa_score", "TextVQA"),
        "ocrbench lmms-eval@0.7.3/ocrbench": lambda answer, golds: ocr(answer, golds, "TextVQA"),
        "formula lmms-eval@0.7.3/ocrbench": lambda answer, golds: ocr(answer, golds, "HME100k"),
        "gqa lmms-eval@0.7.3/gqa": gqa,
    }


def make(file: Path, count: int, seed: int) -> None:
    """Write random cases with the verdicts of the origins."""
    functions = origins()
    draw = random.Random(seed)
    cases = []
    for name, function in functions.items():
        for _ in range(count):
            if name.startswith("relaxed"):
                golds = [number(draw) if draw.random() < 0.8 else text(draw).strip() or "x"]
                answer = near(draw, golds[0]) if draw.random() < 0.5 else number(draw)
            else:
                common = text(draw).strip() or "x"
                people = {"vqa": 10, "gqa": 1}.get(name.split()[0], draw.choice((1, 2, 3)))
                golds = [common if draw.random() < 0.6 else text(draw).strip() or "y" for _ in range(people)]
                answer = near(draw, draw.choice(golds))
            cases.append((name, answer, golds, function(answer, list(golds))))
    file.write_text(json.dumps(cases), encoding="utf-8")


def check(file: Path) -> None:
    """Compare our rules with the verdicts."""
    from multimodal_eval.evaluation.metrics.anls import anls
    from multimodal_eval.evaluation.metrics.reference_matches import gqa, ocrbench, relaxed_accuracy
    from multimodal_eval.evaluation.metrics.vqa_accuracy import vqa_accuracy

    scored = {
        "anls": anls,
        "gqa": gqa,
        "ocrbench": ocrbench,
        "relaxed": relaxed_accuracy,
        "vqa": vqa_accuracy,
        "formula": lambda answer, golds, rule: ocrbench(answer, golds, rule=rule, is_formula=True),
    }
    cases: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for name, answer, golds, verdict in json.loads(file.read_text(encoding="utf-8")):
        family, rule = name.split(" ", 1)
        score = scored[family](answer, golds, rule=rule)  # type: ignore[operator]
        cases[name] += 1
        if abs(score - verdict) > 1e-15:
            wrong[name] += 1
            if wrong[name] <= 3:
                print(f"{name}: {answer!r} {golds!r}: {verdict} there, {score} here")
    for name, count in cases.items():
        print(f"{name}: {count} cases, {wrong[name]} differ")


if __name__ == "__main__":
    command, path, *rest = sys.argv[1:]
    if command == "make":
        make(Path(path), int(rest[0]), int(rest[1]))
    else:
        check(Path(path))
