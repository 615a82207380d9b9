"""Probes: the samples of a run, changed so that the answers show what they rest on.

blind       without images, audio and video
shuffled    each with the media of another sample
rotated     with the choices in another order; the gold answer follows them
caption     with the model's own caption in the place of the media
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.core.config import GenerationConfig, Probe
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.sample import Sample
from multimodal_eval.evaluation.choices import GoldError, gold_letters, options_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["probe_of"]

_MEDIA = ("image", "images", "audio", "video")
_NO_MEDIA = "no sample has an image, audio or video, so there is nothing to leave out"

Change = Callable[[Sequence[Sample]], list[Sample]]


def probe_of(config: GenerationConfig, seed: int) -> Callable[[Sequence[pa.Table]], Iterator[pa.Table]] | None:
    """The change of all tables of samples; None if there is none."""
    if config.probe is None:
        return None
    changes: dict[Probe, Change] = {
        "blind": _blind,
        "shuffled": partial(_shuffled, seed),
        "rotated": lambda samples: [_rotated(sample, seed) for sample in samples],
        "caption": partial(_captioned, config.captions),
    }
    return partial(_changed, changes[config.probe])


def _changed(change: Change, tables: Sequence[pa.Table]) -> Iterator[pa.Table]:
    from multimodal_eval.data.runs.sample_table import to_samples, to_table

    changed = change([sample for table in tables for sample in to_samples(table)])
    start = 0
    for table in tables:
        yield to_table(changed[start : start + len(table)], start)
        start += len(table)


def _media(sample: Sample) -> tuple[Any, ...]:
    return tuple(getattr(sample, name) for name in _MEDIA)


def _has_media(sample: Sample) -> bool:
    return any(_media(sample))


def _digest(*values: object) -> bytes:
    return hashlib.sha256("\0".join(map(repr, values)).encode(errors="surrogatepass")).digest()


def _blind(samples: Sequence[Sample]) -> list[Sample]:
    if not any(map(_has_media, samples)):
        raise ConfigError(f"`probe: blind`: {_NO_MEDIA}")
    return [msgspec.structs.replace(sample, **dict.fromkeys(_MEDIA)) for sample in samples]


def _shuffled(seed: int, samples: Sequence[Sample]) -> list[Sample]:
    """Equal media are neighbours in a random order, which is then shifted by the largest number of equal ones."""
    if not (places := [place for place, sample in enumerate(samples) if _has_media(sample)]):
        raise ConfigError(f"`probe: shuffled`: {_NO_MEDIA}")
    keys = {place: _digest(seed, _media(samples[place])) for place in places}
    places.sort(key=lambda place: (keys[place], _digest(seed, samples[place].id)))
    shift = max(Counter(keys.values()).values())
    if 2 * shift > len(places):
        raise ConfigError("`probe: shuffled`: more than half of the samples have the same media. Use `blind`")
    changed = list(samples)
    for number, place in enumerate(places):
        other = samples[places[(number + shift) % len(places)]]
        changed[place] = msgspec.structs.replace(samples[place], **dict(zip(_MEDIA, _media(other), strict=True)))
    return changed


def _rotated(sample: Sample, seed: int) -> Sample:
    """The choices in another cyclic order, so that every one has another letter."""
    options = options_of(sample)
    letters, texts = list(options), list(options.values())
    if len(letters) < 2:
        raise ConfigError(f"`probe: rotated`: {sample.id!r} has no `choices` to be rotated")
    if sample.prompt is not None and all(text in sample.prompt for text in texts):
        raise ConfigError(
            f"`probe: rotated`: the choices of {sample.id!r} are part of its `prompt`, which stays as it is"
        )
    by = 1 + int.from_bytes(_digest(seed, sample.id)[:8], "big") % (len(letters) - 1)
    moved = {letter: letters[(place - by) % len(letters)] for place, letter in enumerate(letters)}
    turned = texts[by:] + texts[:by]
    answers = {
        name: _moved(sample, getattr(sample, name), options, moved)
        for name in ("expected_answer", "references")
        if getattr(sample, name) is not None
    }
    choices = turned if isinstance(sample.choices, list) else dict(zip(letters, turned, strict=True))
    return msgspec.structs.replace(sample, choices=choices, **answers)


def _moved(sample: Sample, gold: Any, options: Mapping[str, str], moved: Mapping[str, str]) -> Any:
    """The gold answers after the rotation: letters and positions move with the texts, which stay."""
    if isinstance(gold, list):
        return [_moved(sample, answer, options, moved) for answer in gold]
    try:
        (letter,) = gold_letters(Sample(sample.id, expected_answer=gold), dict(options))
    except GoldError as error:
        raise ConfigError(f"`probe: rotated`: {sample.id!r}: {error}") from None
    bare = gold.strip().strip("().")
    if bare.casefold() == letter.casefold():
        return moved[letter]
    return str(list(options).index(moved[letter])) if bare.isdecimal() and options[letter].strip() != bare else gold


def _captioned(captions: str | None, samples: Sequence[Sample]) -> list[Sample]:
    from multimodal_eval.data.runs.run_folder import RunFolder

    if captions is None:
        raise ConfigError(
            "`probe: caption` needs `captions`: the folder of a run with a caption as the answer to each sample"
        )
    folder = RunFolder(captions)
    parts = range(len(folder.read_info().parts))
    texts = {sample.id: sample.generated_answer for part in parts for sample in folder.read_samples(part)}
    return [
        msgspec.structs.replace(
            sample, **dict.fromkeys(_MEDIA), **_with_caption(sample, texts.get(sample.id) or "none")
        )
        for sample in samples
    ]


def _with_caption(sample: Sample, caption: str) -> dict[str, str]:
    asked = "question" if sample.prompt is None else "prompt"
    return {asked: f"Caption of the image: {caption}\n\n{getattr(sample, asked) or ''}"}
