"""What a harness itself makes of answers: its own evaluation, with a model that knows the answers.

Runs in the Python of a harness, and imports nothing of ours: python harness_reference.py PACKAGE FOLDER TASK.
Prints {"metric,filter": aggregate} as the last line.
"""

import json
import math
import sys
from argparse import Namespace
from pathlib import Path

import datasets

package, folder, task = sys.argv[1:]
answers = json.loads(Path(folder, f"{task}.json").read_text("utf-8"))
load = datasets.load_dataset


def local(*_, **__):
    file = next(Path(folder).glob(f"{task}.[jp]*[lt]"))
    kind = "parquet" if file.suffix == ".parquet" else "json"
    names = ("train", "validation", "test", "dev", "val")
    return load(kind, data_files=dict.fromkeys(names, str(file)), cache_dir=folder + "/cache")


datasets.load_dataset = local


def likelihood(tokens, text):
    values = [value for token, value in tokens.items() if token.strip() == text]
    best = max(tokens, key=tokens.get).strip()
    if not values:
        return -math.inf, False
    return (values[0] if len(values) == 1 else math.log(sum(map(math.exp, values)))), text == best


def lm_eval():
    from lm_eval.api.model import LM
    from lm_eval.evaluator import simple_evaluate

    class Knowing(LM):
        def generate_until(self, requests):
            return [answers[request.doc_id] for request in requests]

        def loglikelihood(self, requests):
            return [likelihood(answers[request.doc_id], request.args[1].strip()) for request in requests]

        def loglikelihood_rolling(self, requests):
            raise NotImplementedError

    return simple_evaluate(model=Knowing(), tasks=[task], bootstrap_iters=0)


def lmms_eval():
    from lmms_eval.api.model import lmms
    from lmms_eval.evaluator import simple_evaluate

    class Knowing(lmms):
        is_simple = False

        def generate_until(self, requests):
            return [answers[request.doc_id] for request in requests]

        def generate_until_multi_round(self, requests):
            raise NotImplementedError

        def loglikelihood(self, requests):
            raise NotImplementedError

    arguments = Namespace(output_path=folder, process_with_media=False, reasoning_tags=None, baseline=None)
    return simple_evaluate(model=Knowing(), tasks=[task], bootstrap_iters=0, cli_args=arguments)


results = {"lm-eval": lm_eval, "lmms-eval": lmms_eval}[package]()["results"][task]
scores = {name: value for name, value in results.items() if "," in name and "_stderr" not in name}
print("\n" + json.dumps({name: float(value) for name, value in scores.items() if isinstance(value, int | float)}))
