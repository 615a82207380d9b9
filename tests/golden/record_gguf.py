"""Record how the gguf package decodes quantised blocks: gguf.json.gz.

    python tests/golden/record_gguf.py [--out DIR]

Needs the packages gguf and numpy. The blocks are random bytes from a fixed seed, with scales of ordinary size. For each
type, the file has its id, the blocks (hexadecimal) and their values.
"""

from __future__ import annotations

import argparse
import gzip
import json
from importlib.metadata import version
from pathlib import Path

import gguf
import numpy as np

SEED, BLOCKS = 20231121, 6
# The byte offsets of the f16 values in a block.
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q6_K": [208], "F16": [0], "BF16": []}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    out = parser.parse_args().out
    random = np.random.default_rng(SEED)
    recorded = {}
    for name, scales in SCALES.items():
        kind = gguf.GGMLQuantizationType[name]
        blocks = random.integers(0, 256, (BLOCKS, gguf.GGML_QUANT_SIZES[kind][1]), dtype=np.uint8)
        for offset in scales:
            blocks[:, offset : offset + 2] = random.normal(0, 0.1, BLOCKS).astype("<f2").view(np.uint8).reshape(-1, 2)
        if name == "BF16":
            blocks = (random.normal(0, 1, BLOCKS).astype("<f4").view("<u4") >> 16).astype("<u2").view(np.uint8)
            blocks = blocks.reshape(-1, 2)
        values = blocks.view("<f2").astype("<f4") if name == "F16" else gguf.dequantize(blocks, kind)
        recorded[name] = {"type": int(kind), "blocks": blocks.tobytes().hex(), "numbers": values.ravel().tolist()}
    content = json.dumps({"version": f"gguf {version('gguf')}", "types": recorded}, indent=1).encode()
    (out / "gguf.json.gz").write_bytes(gzip.compress(content, 9, mtime=0))


if __name__ == "__main__":
    main()
