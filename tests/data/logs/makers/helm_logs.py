"""Produce logs with HELM: `python helm_logs.py FOLDER`, where crfm-helm is installed.

It needs no network. HELM's own toy scenario and its simple client run, with scripted answers, some right and some
wrong, two train trials and a perturbation. Of the statistics, a few names are kept. The fixtures were made with
crfm-helm 0.5.16.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

RUNS = {
    "choices": "simple_mcqa:model=simple/model1,num_train_trials=2,data_augmentation=lower",
}
STATISTICS = (
    "exact_match",
    "quasi_exact_match",
    "num_prompt_tokens",
    "num_output_tokens",
    "inference_runtime",
    "num_bytes",
)
KEPT = ("scenario_state.json", "per_instance_stats.json", "stats.json", "run_spec.json")


def answer(prompt: str) -> str:
    """Right for most numbers: a letter, or a word if there are no choices."""
    number = int(re.findall(r"Is (\d+) even", prompt, re.IGNORECASE)[-1])
    is_even = (number % 2 == 0) != (number % 3 == 0)
    return (" A" if is_even else " B") if "\nA. " in prompt else (" Even" if is_even else " Odd")


def _few(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries, with the statistics that are kept."""
    for entry in entries:
        if "stats" in entry:
            entry["stats"] = _few(entry["stats"])
    return [entry for entry in entries if "stats" in entry or entry["name"]["name"] in STATISTICS]


def main(folder: Path) -> None:
    """Run HELM, and keep the files that are read."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    from dataclasses import replace

    from helm.benchmark import run
    from helm.clients.simple_client import SimpleClient

    SimpleClient.invoke_model = lambda self, request: {"completions": [answer(request["prompt"])]}
    make_request = SimpleClient.make_request

    def timed(self: Any, request: Any) -> Any:
        return replace(make_request(self, request), request_time=0.25, request_datetime=1)

    SimpleClient.make_request = timed
    for name, entry in RUNS.items():
        Path("entries.conf").write_text(f'entries: [{{description: "{entry}", priority: 1}}]', encoding="utf-8")
        sys.argv = ["helm-run", "--conf-paths", "entries.conf", "--suite", name, "--max-eval-instances", "4"]
        sys.argv += ["--num-threads", "1", "--disable-cache", "--output-path", "output"]
        run.main()
        for source in Path("output/runs", name).glob("*/*.json"):
            if source.name in KEPT:
                target = Path(name, source.name)
                target.parent.mkdir(exist_ok=True)
                content = json.loads(source.read_text(encoding="utf-8"))
                if isinstance(content, list):
                    content = _few(content)
                target.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
