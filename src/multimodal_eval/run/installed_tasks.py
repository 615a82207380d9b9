"""Tasks of an installed harness as data of a run: `mmeval run lm-eval:TASK` and `lmms-eval:TASK`.

The package writes the samples with their messages and media once, in a process of its own. After that, they are a file
like any other, in the cache folder under a name that depends on their content, so that a run can be continued.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from multimodal_eval.core.config import TaskOrigin
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.records import RECORDED, JsonObject
from multimodal_eval.data.logs.log_format import score_column
from multimodal_eval.data.runs.checksums import sha256
from multimodal_eval.evaluation.harness.process import opened
from multimodal_eval.evaluation.harness.scorer import version_of
from multimodal_eval.resources.store import home, move_into_place

__all__ = ["functions_of", "installed_task"]

SAMPLES = "samples.jsonl"


def installed_task(package: str, task: str, data: Path | None, *, may_download: bool) -> dict[str, Any]:
    """The name, samples, settings, generation and notes of a task. Raises ConfigError if it cannot be asked."""
    place = None if data is None else str(data.resolve())
    if data is not None and not data.exists():
        raise ConfigError(f"--data: {data} does not exist. Name a file or folder with the data of {package}:{task}")
    with _staging(package) as staging:
        about = opened(package, task, place, may_download=may_download).process.ask("prepare", folder=str(staging))
        digest = sha256((staging / SAMPLES).read_bytes())
        target = staging.parents[1] / f"{_plain(task)}-{digest[:16]}"
        if not (target / SAMPLES).is_file():
            move_into_place(staging, target, lambda: (target / SAMPLES).is_file())
    name = f"{package}:{task}"
    version = version_of(about)
    scores = _named(package, about["scores"])
    origin = TaskOrigin(name=name, version=version, data=digest)
    settings: JsonObject = {
        "map": {},
        "format": None,
        "origin": {"name": origin.name, "version": origin.version, "data": origin.data},
        "metrics": list(scores),
        "variants": dict.fromkeys(scores, RECORDED),
        "options": {
            column: {
                "column": f"{score['metric']},{score['filter']}",
                "direction": "higher" if score["higher"] else "lower",
                "task": name,
                "version": version,
                **({} if place is None else {"data": place}),
            }
            for column, score in scores.items()
        },
    }
    functions = dict.fromkeys(score["function"] for score in about["scores"])
    notes = (f"{name}: {package} {version}, scored by {', '.join(functions)}",)
    generation = {"parameters": about["generation"]}
    return {"name": name, "data": target / SAMPLES, "settings": settings, "generation": generation, "notes": notes}


def functions_of(about: Mapping[str, Any]) -> dict[str, str]:
    """ "metric,filter" -> the functions that compute it: of the filter, of a sample, and the aggregate."""
    return {
        f"{score['metric']},{score['filter']}": " > ".join(
            [*about["filters"].get(score["filter"], ()), score["function"], score["aggregation"]]
        )
        for score in about["scores"]
    }


def _named(package: str, scores: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The scores by the names of their columns, as those of an imported log."""
    has_filters = len({score["filter"] for score in scores}) > 1
    names = [f"{score['metric']}_{score['filter']}" if has_filters else score["metric"] for score in scores]
    return {score_column(package, name): score for name, score in zip(names, scores, strict=True)}


def _plain(task: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in task)[:60]


@contextmanager
def _staging(package: str) -> Iterator[Path]:
    parent = home() / "tasks" / package
    parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=parent))
    staging = scratch / "task"
    staging.mkdir()
    try:
        yield staging
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
