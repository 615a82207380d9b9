"""BLEU, ROUGE-L and CIDEr-D equal pycocoevalcap's values, recorded and live."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multimodal_eval import Rows, Sample, evaluate, rescore
from multimodal_eval._native import Captions
from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.core.scoring import aggregate_of
from multimodal_eval.evaluation.metrics.bleu import bleu, compute_bleu, corpus_bleu
from multimodal_eval.evaluation.metrics.cider import cider_d, compute_cider_d
from multimodal_eval.evaluation.metrics.rouge_l import compute_rouge_l, rouge_l
from multimodal_eval.text.document_frequencies import DocumentFrequencies
from multimodal_eval.text.tokenizers import tokenize
from tests.golden.load import golden

METRICS = ["bleu", "rouge_l", "cider_d", "cider"]


def run_over_golden(**settings):
    captions = golden("captions.json.gz")
    rows = zip(captions["candidates"], captions["references"], strict=True)
    samples = [
        {"id": str(number), "generated_answer": candidate, "references": references}
        for number, (candidate, references) in enumerate(rows)
    ]
    return evaluate(samples, **settings)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_the_recorded_values_to_the_last_bit(threads):
    expected = golden("captions.json.gz")
    captions = Captions(expected["candidates"], expected["references"], "ptb", threads)
    scores, _ = captions.bleu()
    assert scores.T.tolist() == expected["bleu"]
    assert captions.rouge_l().tolist() == expected["rouge_l"]
    assert captions.cider_d(captions.document_frequencies()).tolist() == expected["cider_d"]


def test_a_run_gives_the_recorded_corpus_scores():
    corpus = golden("captions.json.gz")["corpus"]
    run = run_over_golden(metrics=["coco"])
    assert run["rouge_l"]["value"] == pytest.approx(corpus["rouge_l"], rel=1e-12)
    assert run["cider_d"]["value"] == pytest.approx(corpus["cider_d"], rel=1e-12)
    parts = [run["bleu"]["parts"][f"bleu_{order}"]["value"] for order in (1, 2, 3)]
    assert [*parts, run["bleu"]["value"]] == pytest.approx(corpus["bleu"], rel=1e-12)


def oracle(candidates, references):
    """pycocoevalcap's own scorers on texts whose tokens are separated by single spaces."""
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    gts = dict(enumerate(references))
    res = {number: [text] for number, text in enumerate(candidates)}
    with contextlib.redirect_stdout(io.StringIO()):
        corpus, each = Bleu(4).compute_score(gts, res)
        _, rouge = Rouge().compute_score(gts, res)
        _, cider = Cider().compute_score(gts, res)
    return corpus, each, list(rouge), list(cider)


token = st.sampled_from("a b c d the dog runs extraordinarily ё".split())
text = st.lists(token, min_size=1, max_size=14).map(" ".join)
images = st.lists(st.tuples(text, st.lists(text, min_size=1, max_size=4)), min_size=2, max_size=6)


@given(images, st.integers(1, 3))
@settings(max_examples=150)
def test_the_live_oracle_agrees(images, threads):
    candidates, references = [c for c, _ in images], [r for _, r in images]
    corpus, each, rouge, cider = oracle(candidates, references)
    captions = Captions(candidates, references, "whitespace", threads)
    scores, stats = captions.bleu()
    # NumPy and the C library may round a logarithm differently, so values may differ in the last bit.
    assert pytest.approx(np.array(each), rel=1e-12, abs=1e-300) == scores.T
    assert [corpus_bleu(stats.sum(axis=0), order) for order in (1, 2, 3, 4)] == pytest.approx(corpus, rel=1e-12)
    assert captions.rouge_l().tolist() == rouge
    assert captions.cider_d(captions.document_frequencies()).tolist() == pytest.approx(cider, rel=1e-12, abs=1e-15)


def slow_lcs(a, b):
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a, 1):
        for j, y in enumerate(b, 1):
            table[i][j] = table[i - 1][j - 1] + 1 if x == y else max(table[i - 1][j], table[i][j - 1])
    return table[-1][-1]


@given(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=200),
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=200),
)
@settings(max_examples=60)
def test_the_longest_common_subsequence_of_long_texts(left, right):
    common = slow_lcs(left, right)
    precision, recall = common / len(left), common / len(right)
    expected = (1 + 1.44) * precision * recall / (recall + 1.44 * precision) if common else 0.0
    assert rouge_l(" ".join(left), [" ".join(right)], tokenizer="whitespace") == pytest.approx(expected, rel=1e-12)


def test_bleu_by_hand():
    # "the cat sat" against "the cat sat down": 3/3, 2/2, 1/1 and no 4-gram; brevity exp(1 - 4/3).
    bleu_1, bleu_2, bleu_3, bleu_4 = bleu("the cat sat", ["the cat sat down"])
    assert (bleu_1, bleu_2, bleu_3) == pytest.approx([np.exp(1 - 4 / 3)] * 3, rel=1e-8)
    assert bleu_4 == pytest.approx((1e-15 / 1e-9) ** 0.25 * np.exp(1 - 4 / 3), rel=1e-8)


def test_the_closest_length_ties_to_the_shorter():
    # Length 3; references of 2 and 4 words are equally close: the shorter one gives no brevity penalty.
    assert bleu("a b c", ["a b c d", "a b"])[0] == pytest.approx(1.0, rel=1e-8)


def test_counts_are_clipped_to_the_best_single_reference():
    # "the the the": at most 2 in one reference -> 2/3.
    assert bleu("the the the", ["the cat the dog", "the end x"])[0] == pytest.approx(2 / 3, rel=1e-8)


def test_rouge_takes_the_best_precision_and_the_best_recall_separately():
    # c = "a b c d"; LCS 2 of ["a b"] gives recall 1, LCS 3 of a longer one precision 3/4.
    value = rouge_l("a b c d", ["a b", "a b c x y z"])
    precision, recall = 3 / 4, 1.0
    assert value == pytest.approx((1 + 1.44) * precision * recall / (recall + 1.44 * precision))


def test_cider_d_by_hand():
    # Corpus: "red car" and "blue sky": every word in 1 image of 2, idf ln 2. "red car" against itself: cosine 1 for
    # orders 1 and 2, 0 for 3 and 4, no length difference: 10 * (1 + 1 + 0 + 0) / 4 = 5.
    corpus = DocumentFrequencies.of([["red car"], ["blue sky"]])
    assert cider_d("red car", ["red car"], corpus) == pytest.approx(5.0)
    # One word more: "red car x" has 2 bigrams, one more: penalty exp(-1/72). Its unigram vector is (1, 1, 1) ln 2.
    unigrams, bigrams = 2 / (np.sqrt(3) * np.sqrt(2)), 1 / np.sqrt(2)
    assert cider_d("red car x", ["red car"], corpus) == pytest.approx(10 * np.exp(-1 / 72) * (unigrams + bigrams) / 4)


@pytest.mark.parametrize("function", [bleu, rouge_l])
def test_references_are_needed(function):
    with pytest.raises(ConfigError, match="at least one reference"):
        function("x", [])
    with pytest.raises(ConfigError, match="at least one reference"):
        cider_d("x", [], DocumentFrequencies())


def test_registered_functions_score_one_sample():
    sample = Sample(id="1", generated_answer="a man riding a wave", references=["a man rides a big wave"])
    assert compute_rouge_l(sample) == rouge_l("a man riding a wave", ["a man rides a big wave"])
    assert compute_bleu(sample) == bleu("a man riding a wave", ["a man rides a big wave"])[3]
    assert 0 < compute_cider_d(sample) < 10


def test_the_standard_error_of_corpus_bleu_is_close_to_a_bootstrap():
    run = run_over_golden(metrics=["bleu"])
    stats = np.array([row["bleu:stats"] for row in run.scores(["bleu:stats"]).to_pylist()])
    random = np.random.default_rng(0)
    values = [corpus_bleu(stats[random.integers(0, len(stats), len(stats))].sum(axis=0)) for _ in range(2000)]
    assert run["bleu"]["stderr"] == pytest.approx(np.std(values, ddof=1), rel=0.1)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_the_gradient_of_corpus_bleu_is_its_slope(order):
    from multimodal_eval.evaluation.metrics.bleu import _gradient

    for sums in ([50, 30, 20, 10, 90, 80, 70, 60, 90, 100.0], [50, 30, 20, 10, 90, 80, 70, 60, 110, 100.0]):
        sums = np.array(sums)
        slope = [
            (corpus_bleu(sums + step, order) - corpus_bleu(sums - step, order)) / 2e-4 for step in np.eye(10) * 1e-4
        ]
        assert _gradient(sums, order) == pytest.approx(np.array(slope), abs=1e-8)


def test_slices_of_bleu_are_corpus_scores():
    captions = golden("captions.json.gz")
    samples = [
        {"id": str(number), "generated_answer": candidate, "references": references, "half": number % 2}
        for number, (candidate, references) in enumerate(
            zip(captions["candidates"], captions["references"], strict=True)
        )
    ]
    run = evaluate(samples, metrics=["bleu"], by=["half"])
    even = Captions(captions["candidates"][::2], captions["references"][::2], "ptb").bleu()[1]
    assert run.results["slices"]["half"]["0"]["metrics"]["bleu"]["value"] == pytest.approx(
        corpus_bleu(even.sum(axis=0))
    )


def test_the_tokenizer_is_an_option_and_in_the_signature():
    run = run_over_golden(metrics=METRICS, options={"rouge_l": {"tokenizer": "unicode"}, "bleu": {"tokenizer": "13a"}})
    assert run["rouge_l"]["signature"] == "rouge_l|v:1|tokenizer:unicode|errors:default@2"
    assert run["bleu"]["signature"] == "bleu|v:1|tokenizer:13a|errors:default@2"


def test_document_frequencies_from_a_file(tmp_path):
    first = run_over_golden(metrics=["cider_d"], output=tmp_path / "first")
    table = str(tmp_path / "first" / "state" / "cider_d.bin")
    again = run_over_golden(metrics=["cider_d"], options={"cider_d": {"df": table}})
    assert again["cider_d"]["value"] == first["cider_d"]["value"]
    assert "df:cider_d.bin@" in again["cider_d"]["signature"]
    with pytest.raises(ConfigError, match="No such file"):
        run_over_golden(metrics=["cider_d"], options={"cider_d": {"df": "nowhere"}})


def test_statistics_of_a_run_sum_to_the_corpus_score():
    run = run_over_golden(metrics=["bleu"])
    stats = np.array([row["bleu:stats"] for row in run.scores(["bleu:stats"]).to_pylist()])
    assert aggregate_of(compute_bleu)(Rows(np.zeros(len(stats)), stats)).value == run["bleu"]["value"]


def test_tokens_with_a_space_are_split_except_for_rouge():
    # coco-caption's Bleu and Cider split tokens at white space once more; its Rouge does not.
    texts = ["call (555) 123-4567 now", "phone (555) 123-4567 today"]
    captions = Captions([texts[0], "a dog"], [[texts[1]], ["the dog"]], "ptb")
    whole = tokenize(texts)
    pieces = [" ".join(tokens).split() for tokens in whole]
    assert len(pieces[0]) > len(whole[0])
    _, stats = captions.bleu()
    assert stats[0][0] == len(pieces[0]) - 2  # all except "call" and "now"
    assert stats[0][8] == len(pieces[0])
    common = len(whole[0]) - 2
    precision, recall = common / len(whole[0]), common / len(whole[1])
    assert captions.rouge_l()[0] == pytest.approx(2.44 * precision * recall / (recall + 1.44 * precision))


def test_a_line_separator_inside_a_token_counts_as_a_space():
    assert tokenize(["5\u20281/2 feet"]) == tokenize(["5 1/2 feet"])


@pytest.mark.parametrize("metric", ["cider", "cider_d"])
def test_unusable_tables_are_refused(tmp_path, metric):
    table = str(tmp_path / "table.df")
    for sets, tokenizer, error in (
        ([], "ptb", InputError),
        ([["a dog"]], "ptb", InputError),
        ([["a b"], ["c"]], "unicode", ConfigError),
    ):
        DocumentFrequencies.of(sets, tokenizer).save(table)
        with pytest.raises(error):
            run_over_golden(metrics=[metric], options={metric: {"df": table}})
    with pytest.raises(ConfigError, match="'ptb' tokens"):
        run_over_golden(metrics=[metric], options={metric: {"df": "coco-val2014", "tokenizer": "13a"}})
    with pytest.raises(ConfigError, match="must be"):
        run_over_golden(metrics=[metric], options={metric: {"df": 5}})


def test_an_empty_corpus_is_not_mistaken_for_no_corpus():
    sample = Sample(id="1", generated_answer="a dog", references=["a dog"])
    with pytest.raises(InputError, match="CORPUS_TOO_SMALL"):
        compute_cider_d(sample, corpus=DocumentFrequencies())


def test_a_rewritten_table_is_read_again(tmp_path):
    table = str(tmp_path / "table.df")
    signatures = set()
    for word in ("dog", "elephant"):
        DocumentFrequencies.of([[f"a {word}"], [word], ["b"]]).save(table)
        signatures.add(run_over_golden(metrics=["cider"], options={"cider": {"df": table}})["cider"]["signature"])
    assert len(signatures) == 2


def test_tables_of_different_tokenizers_do_not_merge():
    with pytest.raises(RuntimeError, match="different tokenizers"):
        DocumentFrequencies.of([["a b"]], "ptb") + DocumentFrequencies.of([["a b"]], "unicode")


def test_bleu_may_be_the_headline_of_a_task(tmp_path):
    tasks = {"t": {"metrics": ["bleu"], "headline": "bleu"}}
    run = run_over_golden(task="t", tasks=tasks, output=tmp_path / "run")
    assert run["composite"]["value"] == run["bleu"]["value"]
    assert run["composite"]["stderr"] == run["bleu"]["stderr"]
    assert rescore(run, {"seed": 1})["composite"]["value"] == run["bleu"]["value"]


def test_a_preset_is_recorded_as_its_metrics_and_shares_its_options():
    run = run_over_golden(metrics=["coco"], options={"coco": {"tokenizer": "unicode"}, "bleu": {"tokenizer": "13a"}})
    assert run.info.config.metrics == ["bleu", "rouge_l", "cider_d"]
    assert run.info.config.presets == ["coco"]
    assert run["rouge_l"]["signature"].endswith("tokenizer:unicode|errors:default@2")
    assert run["bleu"]["signature"].endswith("tokenizer:13a|errors:default@2")


def test_slices_have_parts():
    captions = golden("captions.json.gz")
    rows = zip(captions["candidates"][:40], captions["references"][:40], strict=True)
    samples = [{"id": str(n), "generated_answer": c, "references": r, "half": n % 2} for n, (c, r) in enumerate(rows)]
    run = evaluate(samples, metrics=["bleu"], by=["half"])
    even = Captions(captions["candidates"][:40:2], captions["references"][:40:2], "ptb").bleu()[1]
    part = run.results["slices"]["half"]["0"]["metrics"]["bleu"]["parts"]["bleu_2"]["value"]
    assert part == pytest.approx(corpus_bleu(even.sum(axis=0), 2))


def test_the_path_of_a_table_is_stored_as_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    DocumentFrequencies.of([["a dog"], ["a cat"]]).save("mine.df")
    run = run_over_golden(metrics=["cider"], options={"cider": {"df": "mine.df"}})
    assert run.info.config.options["cider"]["df"] == str((tmp_path / "mine.df").resolve())


def test_rescoring_with_other_metrics_drops_the_preset():
    run = run_over_golden(metrics=["coco"])
    assert rescore(run, {"seed": 1}).info.config.presets == ["coco"]
    assert rescore(run, {"metrics": ["rouge_l"]}).info.config.presets == []
