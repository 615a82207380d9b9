"""A package with the public functions of lm-eval that ours calls, for what is on our side: processes and errors.

What lm-eval and lmms-eval themselves compute is compared in `test_equal_to_harness.py`, with the real packages.
"""

from pathlib import Path

TASKS = """
import os


class Instance:
    def __init__(self, doc_id, idx, args):
        self.doc_id, self.idx, self.args, self.resps, self.filtered_resps = doc_id, idx, args, [], {}


class First:
    name, filters = "none", []

    def apply(self, instances):
        for each in instances:
            each.filtered_resps["none"] = each.resps[0]


def mean(values):
    return sum(values) / len(values)


def longest(values):
    return max(values)


class Config:
    doc_to_choice, metadata, repeats, process_results = None, {"version": 2}, 1, None


class Task:
    OUTPUT_TYPE, config = "generate_until", Config
    eval_docs = [{"question": f"{n}+{n}?", "answer": str(2 * n), "environment": sorted(os.environ)} for n in range(4)]

    def __init__(self, name):
        self.config.task, self._filters, self._metric_fn_list = name, [First()], {}

    def set_config(self, key, value): pass
    def get_config(self, key): return 0
    def set_fewshot_seed(self, seed): pass
    def doc_to_target(self, doc): return doc["answer"]
    def higher_is_better(self): return {"acc": True, "longest": False}
    def aggregation(self): return {"acc": mean, "longest": longest}
    def construct_requests(self, doc, ctx, metadata): return Instance(metadata[1], 0, (ctx,))
    def apply_filters(self): self._filters[0].apply(self._instances)

    def build_all_requests(self, limit, rank, world_size):
        settings = {"until": ["\\\\n"], "max_gen_toks": 7}
        self.instances = [Instance(n, 0, (doc["question"], settings)) for n, doc in enumerate(self.eval_docs)]

    def process_results(self, doc, results):
        print("to stdout, which must not reach the replies")
        if results[0] == "raise":
            raise ValueError("a bad answer")
        if results[0] == "die" and not os.path.exists(os.environ["HOME"] + "/spared"):
            os._exit(7)
        return {"acc": float(results[0] == doc["answer"]), "longest": len(results[0])}


class TaskManager:
    all_subtasks, all_groups, all_tags = ["sums", "rolling", "judged", "codes"], ["numbers"], ["all"]
    task_index = {name: {"yaml_path": os.path.join(os.path.dirname(__file__), f"{name}.yaml")} for name in all_subtasks}

    def load(self, names):
        return {"tasks": {name: Task(name) for name in names}}
"""
FILES = {
    "lm_eval/__init__.py": "",
    "lm_eval/tasks.py": TASKS,
    "lm_eval/sums.yaml": "output_type: generate_until\ndataset_path: ours/sums\n",
    "lm_eval/rolling.yaml": "output_type: loglikelihood_rolling\n",
    "lm_eval/codes.yaml": "repeats: 8\n",
    "lm_eval/judged.yaml": "process_results: !function judging.score\n",
    "lm_eval/judging.py": "from openai import OpenAI\n\n\ndef ask():\n    return OpenAI()\n\n\n"
    "def score(doc, results):\n    return ask()\n",
    # The part of PyYAML that is called: the files above have one line per key.
    "yaml.py": "class YAMLError(Exception): pass\n\n\nclass SafeLoader:\n    @classmethod\n"
    "    def add_multi_constructor(cls, *_): pass\n\n\ndef load(text, loader):\n"
    "    pairs = dict(line.split(': ', 1) for line in text.splitlines())\n"
    "    return {key: int(value) if value.isdigit() else value for key, value in pairs.items()}\n",
}


def write_standin(folder: Path, version: str = "0.4.13") -> Path:
    """Write the package below a folder, which then belongs into $PYTHONPATH."""
    information = folder / f"lm_eval-{version}.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: lm-eval\nVersion: {version}\n", "utf-8")
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content, "utf-8")
    return folder
