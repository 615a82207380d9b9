"""The same captions by every harness, and the same answers by every rule: the tables of docs/who-measures-what.md.

    mmeval fetch meteor-1.5-en && mmeval fetch spice
    python bench/who_measures_what.py DATA --environments FOLDER [--update docs/who-measures-what.md]

DATA contains flickr8k/Flickr8k.token.txt.gz, mmmu-pro/gpt4o_half.jsonl.gz and rules/short_answers_half.json.gz. FOLDER
gets one virtual environment per peer, from the package index: about 7 GB. The peers need `java`. NLTK's METEOR needs
its WordNet: `--nltk-data FOLDER`. Peers are installed without the requirements that the measured functions do not use,
such as vision models and servers (bench/peers/environments.py says which are used). A peer that fails becomes a line
with the reason. The figures go to bench/results/who_measures_what.json; the captions and answers are in no output.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from peers import inputs, our_answers, our_captions, tables
from peers.caption_rows import ROWS
from peers.environments import PEERS, Environments

import multimodal_eval
from multimodal_eval.core.rules import rules_of

ROOT = Path(__file__).resolve().parents[1]
FIXTURE = ROOT / "tests" / "golden" / "captions.json.gz"
RESULTS = ROOT / "bench" / "results" / "who_measures_what.json"


class Peers:
    """The results of the runners, kept in the folder of the environments."""

    def __init__(self, environments: Environments, *, latest: bool, reuse: bool) -> None:
        self.environments, self.latest, self.reuse = environments, latest, reuse
        self.versions: dict[str, str] = {}

    def results(self, kind: str, name: str, data: Any) -> dict[str, dict[str, Any]]:
        """What every peer that has this kind returns for the data."""
        return {peer.name: self._result(peer, kind, name, data) for peer in PEERS if getattr(peer, kind)}

    def _result(self, peer: Any, kind: str, name: str, data: Any) -> dict[str, Any]:
        file = self.environments.folder / "results" / f"{peer.name}_{name}.json"
        if self.reuse and file.exists():
            result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        else:
            started = time.monotonic()
            try:
                self.environments.install(peer, latest=self.latest)
                result = self.environments.run(peer, kind, data)
            except (RuntimeError, subprocess.CalledProcessError) as error:
                result = {"error": str(error)}
            result["seconds"] = round(time.monotonic() - started, 1)
            file.parent.mkdir(exist_ok=True)
            file.write_text(json.dumps(result), encoding="utf-8")
        print(f"{peer.name:<15} {name:<9} {result['seconds']:7.1f} s  {result.get('error', '')}", flush=True)
        self.versions |= {package: version for package, version in result.get("versions", {}).items() if version}
        return result


def caption_figures(peers: Peers, name: str, data: our_captions.CaptionSet) -> dict[str, Any]:
    """The scores of every row with ours."""
    given = {"candidates": data.candidates, "references": data.references}
    results = peers.results("captions", name, given)
    computed = {"whole_files": our_captions.whole_files(data)}
    rows = []
    for row in ROWS:
        result = results[row.peer]
        figures = {"name": row.name, "version": (result.get("versions") or {}).get(row.package, "")}
        if "error" in result:
            rows.append({**figures, "error": result["error"]})
            continue
        scores = result["result"][row.name]
        recipe = row.recipe.__name__
        if recipe not in computed:
            computed[recipe] = row.recipe(data)
        ours = {metric: value for metric, value in computed[recipe].items() if isinstance(scores.get(metric), float)}
        figures |= {"scores": scores, "recipe": recipe, "ours": ours, "runs": row.runs, "changed": row.changed}
        rows.append({**figures, "differences": our_captions.differences(ours, scores), "why": row.why})
    return {"images": len(data.candidates), "mmeval": computed["whole_files"], "rows": rows}


def answer_figures(peers: Peers, folder: Path) -> dict[str, Any]:
    """The figures of every rule, ours and the peers', by family."""
    real = inputs.real_answers(folder)
    cases = inputs.generated_answers(folder / "rules" / "short_answers_half.json.gz")
    scored = {**cases, "choice": real}  # the generated questions have no gold answer
    cases = {**cases, "choice": [*real, *cases["choice"]]}
    given = {
        family: [{key: case[key] for key in ("answer", "options", "golds") if key in case} for case in rows]
        for family, rows in cases.items()
    }
    results = peers.results("answers", "answers", given)
    recorded = {rule: [case["recorded"][rule] for case in real] for rule in inputs.RECORDED.values()}
    results["recorded"] = {"result": {"choice": recorded}}
    return {family: _family(family, cases[family], scored[family], results) for family in cases}


def _family(family: str, cases: list[Any], scored: list[Any], results: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    theirs: set[str] = set()
    for name, result in results.items():
        for rule, verdicts in (result.get("result") or {}).get(family, {}).items():
            theirs.add(rule)
            compared = cases[: len(verdicts)]
            nearest, equal = our_answers.nearest_rule(family, verdicts, compared)
            if rule in rules_of(family):
                ours = our_answers.our_verdicts(family, rule, compared)
                nearest, equal = rule, our_answers.equal_verdicts(ours, verdicts)
                _print_unequal(rule, compared, verdicts, ours)
            figures = our_answers.figures(scored, verdicts[: len(scored)])
            package = _package(name, result)
            rows.append({"rule": rule, "package": package, **figures, "nearest": nearest, "equal": equal})
            rows[-1]["cases"] = len(verdicts)
            if cut := our_answers.with_cut_options(rule, verdicts, compared):
                rows[-1]["cut"] = cut
    for rule in rules_of(family):
        if rule not in theirs:
            verdicts = our_answers.our_verdicts(family, rule, scored)
            rows.append({"rule": rule, "package": "mmeval", **our_answers.figures(scored, verdicts)})
    return sorted(rows, key=lambda row: -row["score"])


def _package(peer: str, result: dict[str, Any]) -> str:
    if peer == "recorded":
        return "recorded"
    package, version = next(iter(result["versions"].items()))
    return f"{package} {version}"


def _print_unequal(rule: str, cases: list[Any], theirs: list[Any], ours: list[Any]) -> None:
    for case, verdict, our in zip(cases, theirs, ours, strict=True):
        if not our_answers.is_same(verdict, our):
            print(f"  {rule}: {case['answer'][-200:]!r} {case.get('golds')}: {verdict!r} there, {our!r} here")


def java() -> str:
    done = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)
    return done.stderr.splitlines()[0].replace('"', "").replace(" version ", " ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--environments", type=Path, required=True, help="the folder of the peers' environments")
    parser.add_argument("--nltk-data", type=Path, help="NLTK's data, with corpora/wordnet")
    parser.add_argument(
        "--latest", action="store_true", help="install the newest versions instead of the recorded ones"
    )
    parser.add_argument(
        "--reuse", action="store_true", help="take results of an earlier call that are in FOLDER/results"
    )
    parser.add_argument("--update", type=Path, metavar="PAGE", help="write the tables into the page")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file of the figures")
    arguments = parser.parse_args()
    arguments.environments.mkdir(parents=True, exist_ok=True)
    environments = Environments(arguments.environments, arguments.nltk_data)
    environments.fetch_punkt()
    os.environ["NLTK_DATA"] = str(environments.nltk_data)
    peers = Peers(environments, latest=arguments.latest, reuse=arguments.reuse)
    results: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "mmeval": multimodal_eval.__version__,
        "python": platform.python_version(),
        "java": java(),
        "answers": answer_figures(peers, arguments.data),
        "fixture": caption_figures(peers, "fixture", inputs.own_captions(FIXTURE)),
        "captions": caption_figures(peers, "flickr8k", inputs.flickr8k(arguments.data)),
    }
    results["versions"] = dict(sorted(peers.versions.items()))
    arguments.results.parent.mkdir(exist_ok=True)
    arguments.results.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for name, content in tables.sections(results).items():
        print(f"\n## {name}\n\n{content}")
    if arguments.update:
        page = arguments.update.read_text(encoding="utf-8")
        arguments.update.write_text(tables.updated(page, results), encoding="utf-8")


if __name__ == "__main__":
    main()
