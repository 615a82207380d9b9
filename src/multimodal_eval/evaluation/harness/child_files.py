"""What the files of a task say about it: its YAML, and whether its functions ask a judge. Nothing of it is run.

Imported by `child.py` in the Python of a harness, which does not have this package.
"""

from __future__ import annotations

import ast
import json
import os
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = "__folder__"  # the key with the folder of a YAML file
_JUDGE = re.compile(
    r"OpenAI|openai|azure|anthropic|requests\.post|get_chat_response|get_server|llm_judge|LLMJudge|get_eval\(|gpt_eval"
    r"|judge_model|API_URL|Verifier"
)


@cache
def yaml_of(path: str) -> dict[str, Any]:
    """The keys of a task's YAML and of the files that it includes. Functions are named, and not imported."""
    yaml = import_module("yaml")
    try:
        content = yaml.load(Path(path).read_text("utf-8"), _loader()) or {}
    except (OSError, yaml.YAMLError):
        return {}
    if not isinstance(content, dict):
        return {}
    included: dict[str, Any] = {}
    named = content.get("include") or []
    for name in reversed(named if isinstance(named, list) else [named]):
        included.update(yaml_of(str(Path(path).parent / str(name))))
    return {**included, **content, FOLDER: str(Path(path).parent)}


@cache
def _loader() -> Any:
    yaml = import_module("yaml")
    loader: Any = type("Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
    loader.add_multi_constructor("!", lambda _, suffix, node: f"!{suffix} {getattr(node, 'value', '')}")
    return loader


def judge_of(config: dict[str, Any]) -> str | None:
    """The function of a task that asks a model, if there is one."""
    named = json.dumps([config.get("process_results"), config.get("metric_list")], default=str)
    for name in re.findall(r"!function ([\w.]+)", named):
        module, _, function = name.rpartition(".")
        if function in judging(str(Path(config[FOLDER], *module.split(".")).with_suffix(".py"))):
            return str(name)
    return None


@cache
def judging(file: str) -> frozenset[str]:
    """The functions of a file that ask a model, by themselves or by other names of the file."""
    try:
        text = Path(file).read_text("utf-8", "replace")
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    sources: dict[str, str] = {}
    for node in tree.body:
        source = ast.get_source_segment(text, node) or ""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            sources[node.name] = source
        elif isinstance(node, ast.Assign):
            sources.update({target.id: source for target in node.targets if isinstance(target, ast.Name)})
    asking = {name for name, source in sources.items() if _JUDGE.search(source)}
    while True:
        calls = {
            name for name, source in sources.items() if name not in asking and asking & set(re.findall(r"\w+", source))
        }
        if not calls:
            return frozenset(asking)
        asking |= calls


def has_data(config: dict[str, Any]) -> bool:
    """Whether a dataset is in the cache of the Hugging Face hub."""
    name = str(config.get("dataset_path") or "")
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub") / f"datasets--{name.replace('/', '--')}"
    return bool(name) and (hub.is_dir() or (home / "datasets" / name.replace("/", "___")).is_dir())
