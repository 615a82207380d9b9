"""A leaderboard of the dialogue contest: python bench/dialogue.py [SUBMISSIONS] [REPLIES]

By default 50 submissions of 10,000 replies, half of them in Russian, of four types. Measures the whole command, from
JSON files to the printed ranks, on all cores, and again with a tenth of the replies. The words come from the two
dictionaries of synonyms, drawn by Zipf's law, so that stems, forms and synonyms occur as often as usual.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from importlib.resources import files
from itertools import accumulate
from pathlib import Path

import wiki_ru_wordnet

from multimodal_eval.core.machine import cores
from multimodal_eval.dialogue import WEIGHTS

VOCABULARY = 20_000


def vocabularies() -> dict[str, list[str]]:
    database = Path(str(wiki_ru_wordnet.__file__)).with_name("database") / "wikiwordnet.db"
    with sqlite3.connect(f"{database.as_uri()}?mode=ro&immutable=1", uri=True) as connection:
        russian = [row[0] for row in connection.execute("SELECT DISTINCT lemma FROM synsets ORDER BY synset_id")]
    table = gzip.decompress((files("multimodal_eval.text") / "wordnet.tsv.gz").read_bytes()).decode()
    english = sorted(set(re.findall("[a-z]{3,}", table)))
    rng = random.Random(0)
    words = {"ru": [word for word in russian if " " not in word], "en": english}
    return {language: rng.sample(lemmas, VOCABULARY) for language, lemmas in words.items()}


class Writer:
    """Writes random sentences of a language."""

    def __init__(self, words: list[str], rng: random.Random) -> None:
        self.words, self.rng = words, rng
        self.cumulative = list(accumulate(1 / (rank + 3) for rank in range(len(words))))

    def sentence(self, length: int) -> list[str]:
        return self.rng.choices(self.words, cum_weights=self.cumulative, k=length)


def write_contest(folder: Path, submissions: int, replies: int) -> None:
    rng = random.Random(1)
    writers = {language: Writer(words, rng) for language, words in vocabularies().items()}
    gold: dict[str, dict[str, object]] = {}
    variants: dict[str, list[list[str]]] = {}
    languages: dict[str, str] = {}
    total = 0
    while total < replies:
        name, language = f"d{len(gold)}", ("en", "ru")[len(gold) % 2]
        count = min(rng.randint(1, 5), replies - total)
        reply_texts = [[writers[language].sentence(n) for n in (3, 10, 12)] for _ in range(count)]
        gold[name] = {
            "type": list(WEIGHTS)[len(gold) // 2 % 4],
            "replies": [[" ".join(words).capitalize() + "." for words in texts] for texts in reply_texts],
        }
        variants[name], languages[name] = [texts[1] for texts in reply_texts], language
        total += count
    (folder / "gold.json").write_text(json.dumps(gold, ensure_ascii=False))
    for number in range(submissions):
        submission = folder / "submissions" / f"system-{number:02d}"
        submission.mkdir(parents=True)
        share_kept = 0.4 + 0.5 * number / max(1, submissions - 1)
        answers, perplexities = {}, {}
        for name, texts in variants.items():
            writer = writers[languages[name]]
            answers[name] = [
                " ".join(w if rng.random() < share_kept else writer.sentence(1)[0] for w in words) for words in texts
            ]
            perplexities[name] = [1 + rng.expovariate(share_kept) for _ in texts]
        (submission / "output.json").write_text(json.dumps(answers, ensure_ascii=False))
        (submission / "ppl_output.json").write_text(json.dumps(perplexities))


def measured(submissions: int, replies: int, *, show: bool) -> float:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_contest(folder, submissions, replies)
        command = [sys.executable, "-m", "multimodal_eval.cli.main", "leaderboard"]
        arguments = [str(folder / "gold.json"), str(folder / "submissions"), "-o", str(folder / "runs")]
        start = time.perf_counter()
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True)
        seconds = time.perf_counter() - start
    if show:
        print("\n".join(done.stdout.splitlines()[:12]), "\n…")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    rate = submissions * replies / seconds
    print(
        f"{submissions} submissions x {replies:,} replies: {seconds:.1f} s, {rate:,.0f} replies/s on {cores()} cores, "
        f"largest process {peak:.0f} MB"
    )
    return seconds


def main() -> None:
    submissions = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    replies = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    small = measured(submissions, replies // 10, show=False)
    large = measured(submissions, replies, show=True)
    print(f"ten times the replies take {large / small:.1f} times as long")


if __name__ == "__main__":
    main()
