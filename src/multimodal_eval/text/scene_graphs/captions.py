"""Captions of many images, compared as scene graphs. Every distinct caption is parsed once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from multimodal_eval._native import tokenize
from multimodal_eval.text.parsing import CaptionParser
from multimodal_eval.text.scene_graphs.matching import Match, SceneGraph, compare, merged
from multimodal_eval.text.scene_graphs.openings import Openings
from multimodal_eval.text.scene_graphs.rules import scene_graph

IMAGES_AT_ONCE = 1024  # the parses of more would take much memory

Tokens = tuple[str, ...]


def compared_captions(
    parser: CaptionParser,
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    openings: Openings = "original",
    threads: int = 1,
    are_lines: bool = False,
) -> Iterator[Match]:
    """Each candidate compared with its references. With `are_lines`, tokens depend on the next caption, as in Java."""
    counts = [len(texts) for texts in references]
    all_candidates = _tokens(candidates, are_lines)
    all_references = _tokens([text for texts in references for text in texts], are_lines)
    start = 0
    for first in range(0, len(all_candidates), IMAGES_AT_ONCE):
        block = counts[first : first + IMAGES_AT_ONCE]
        end = start + sum(block)
        yield from _compared(
            parser, all_candidates[first : first + IMAGES_AT_ONCE], all_references[start:end], block, openings, threads
        )
        start = end


def caption_graphs(
    parser: CaptionParser, captions: Sequence[Tokens], openings: Openings = "original", threads: int = 1
) -> dict[Tokens, SceneGraph]:
    """The scene graph of each distinct caption."""
    distinct = list(dict.fromkeys(captions))
    return {
        tokens: scene_graph(sentence, openings)
        for tokens, sentence in zip(distinct, parser.parse(distinct, threads), strict=True)
    }


def _tokens(texts: Sequence[str], are_lines: bool) -> list[Tokens]:
    return [tuple(tokens) for tokens in tokenize(list(texts), "ptb", are_lines)]


def _compared(
    parser: CaptionParser,
    candidates: list[Tokens],
    references: list[Tokens],
    counts: list[int],
    openings: Openings,
    threads: int,
) -> Iterator[Match]:
    graphs = caption_graphs(parser, [*candidates, *references], openings, threads)
    start = 0
    for tokens, count in zip(candidates, counts, strict=True):
        reference = merged(graphs[other] for other in references[start : start + count])
        yield compare(merged([graphs[tokens]]), reference)
        start += count
