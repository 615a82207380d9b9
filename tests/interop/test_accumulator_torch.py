"""The accumulator over the processes of torch.distributed, with a sampler that repeats samples."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import torch.distributed as dist
from torch.utils.data import DistributedSampler
from multimodal_eval import Accumulator, evaluate

rank, world, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
answers = [f"a dog runs to house {i} {'fast' if i % 3 else ''}" for i in range(7)]
references = [[f"a dog runs to {i}", "the fast dog"] for i in range(7)]

scores = Accumulator("cider_d", "bleu")
for row in DistributedSampler(answers, world, rank, shuffle=True):
    scores.update([answers[row]], [references[row]], id=[row])
parts = [None] * world
dist.all_gather_object(parts, scores)
total = Accumulator.merged(parts)
assert len(total) == 9  # 7 samples on 3 ranks: two are repeated

values = total.compute()
run = evaluate({"generated_answer": answers, "references": references}, metrics=["cider_d", "bleu"])
assert {n: (float(v), v.low, v.n_total) for n, v in values.items() if v.n_total} == {
    n: (run[n]["value"], run[n]["low"], run[n]["n_total"]) for n in ("cider_d", "bleu")
}
dist.destroy_process_group()
print("equal")
"""


@pytest.mark.torch
def test_ranks_exchange_their_accumulators(tmp_path):
    pytest.importorskip("torch")
    store = tmp_path / "store"
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(rank), "3", str(store)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(3)
    ]
    for rank in ranks:
        printed, errors = rank.communicate(timeout=600)
        assert printed.strip() == "equal", errors
