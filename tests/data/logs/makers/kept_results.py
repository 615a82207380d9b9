"""Keep of a results file what does not describe the machine."""

from __future__ import annotations

import json
from pathlib import Path

KEPT = (
    *("results", "configs", "n-shot", "higher_is_better", "n-samples", "config", "lm_eval_version"),
    *("lmms_eval_version", "model_source", "model_name"),
)
OF_TASK = ("task", "metric_list", "filter_list", "output_type", "generation_kwargs", "repeats")
OF_CONFIG = ("model", "model_args", "limit")


def keep(path: Path) -> None:
    """Rewrite a file with the keys that are kept."""
    content = json.loads(path.read_text(encoding="utf-8"))
    kept = {key: content[key] for key in KEPT if key in content}
    kept["configs"] = {
        task: {key: config[key] for key in OF_TASK if key in config} for task, config in content["configs"].items()
    }
    kept["config"] = {key: content["config"].get(key) for key in OF_CONFIG}
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
