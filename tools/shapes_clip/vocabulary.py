"""A CLIP-style byte-level BPE tokenizer, trained on generated captions and common English words."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from tools.shapes_clip.captions import caption
from tools.shapes_clip.scenes import random_scene

START, END = "<|startoftext|>", "<|endoftext|>"
MERGES = 900
TEXT_LENGTH = 64  # of the model; training captions are shorter

COMMON = """
the of and to in is that it was for on are as with his they be at one have this from or had by not but some what there
we can out other were all your when up use word how said an each she which do their time if will way about many then
them would write like so these her long make thing see him two has look more day could go come did my sound no most
number who over know water than call first people may down side been now find any new work part take get place made
live where after back little only round man year came show every good me give our under name very through just form
much great think say help low line before turn cause same mean differ move right boy old too does tell sentence set
three want air well also play small end put home read hand port large spell add even land here must big high such
follow act why ask men change went light kind off need house picture try us again animal point mother world near build
self earth father head stand own page should country found answer school grow study still learn plant cover food sun
four thought let keep eye never last door between city tree cross since hard start might story saw far sea draw left
late run while press close night real life few stop open seem together next white children begin got walk example ease
paper often always music those both mark book letter until mile river car feet care second group carry took rain eat
room friend began idea fish mountain north once base hear horse cut sure watch color colour face wood main enough plain
girl usual young ready above ever red list though feel talk bird soon body dog family direct pose leave song measure
state product black short numeral class wind question happen complete ship area half rock order fire south problem piece
told knew pass farm top whole king size heard best hour better true during hundred am remember step early hold west
ground interest reach fast five sing listen six table travel less morning ten simple several vowel toward war lay
against pattern slow center love person money serve appear road map science rule govern pull cold notice voice fall
power town fine drive lead cry dark machine note wait plan figure star box noun field rest able pound done beauty stood
contain front teach week final gave green quick develop sleep warm free minute strong special mind behind clear tail
produce fact street inch nothing course stay wheel full force blue object decide surface deep moon island foot yet busy
test record boat common gold possible plane age dry wonder laugh thousand ago ran check game shape yes hot miss brought
heat snow bed bring sit perhaps fill east weight language among cat image photo describe visible background corner
bottom middle centre outline surrounded bright pale dark tall wide round flat
""".split()
OFF_TOPIC = (
    "dog cat horse car house tree boat bird fish man woman girl boy table book river mountain city road flower"
).split()


def train_tokenizer(seed: int = 0, captions: int = 30_000) -> Any:
    """A `tokenizers.Tokenizer` in the style of CLIP: lower case, start and end tokens, word ends marked by `</w>`."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    random = Random(seed)
    learner = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    learner.normalizer, learner.pre_tokenizer = _normalizer(), _pre_tokenizer()
    texts = [caption(random_scene(random), random).text for _ in range(captions)]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) * 2 + MERGES, initial_alphabet=alphabet, end_of_word_suffix="</w>", show_progress=False
    )
    learner.train_from_iterator([*texts, *(COMMON * 3), *(OFF_TOPIC * 20)], trainer)
    learned = json.loads(learner.to_str())["model"]["merges"]
    split = [pair if isinstance(pair, list) else pair.split(" ") for pair in learned[:MERGES]]
    merges = [(left, right) for left, right in split]
    pieces = [*alphabet, *(letter + "</w>" for letter in alphabet), *("".join(pair) for pair in merges), START, END]
    return _assemble({piece: at for at, piece in enumerate(dict.fromkeys(pieces))}, merges)


def _normalizer() -> Any:
    from tokenizers import Regex, normalizers

    spaces = normalizers.Replace(Regex(r"\s+"), " ")
    return normalizers.Sequence([normalizers.NFC(), spaces, normalizers.Lowercase()])


def _pre_tokenizer() -> Any:
    from tokenizers import Regex, pre_tokenizers

    words = Regex(r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+")
    split = pre_tokenizers.Split(words, behavior="removed", invert=True)
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False)])


def _assemble(vocabulary: dict[str, int], merges: list[tuple[str, str]]) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, processors

    tokenizer = Tokenizer(
        models.BPE(vocab=vocabulary, merges=merges, unk_token=END, end_of_word_suffix="</w>", fuse_unk=False)
    )
    tokenizer.normalizer, tokenizer.pre_tokenizer = _normalizer(), _pre_tokenizer()
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing(
        (END, vocabulary[END]), (START, vocabulary[START]), trim_offsets=False, add_prefix_space=False
    )
    tokenizer.add_special_tokens([AddedToken(START, special=True), AddedToken(END, special=True)])
    return tokenizer


def save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Write tokenizer.json and the two small files that transformers also reads."""
    tokenizer.save(str(folder / "tokenizer.json"))
    special = {"bos_token": START, "eos_token": END, "pad_token": END, "unk_token": END}
    _write(folder / "special_tokens_map.json", special)
    settings = {"tokenizer_class": "CLIPTokenizer", "model_max_length": TEXT_LENGTH, "do_lower_case": True, **special}
    _write(folder / "tokenizer_config.json", {**settings, "add_prefix_space": False, "errors": "replace"})


def _write(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content, indent=2) + "\n", "utf-8")


def padded(ids: list[int], length: int) -> list[int]:
    """The ids cut or padded to `length`. They end with the end token, which is also CLIP's padding."""
    end = ids[-1]
    return ids + [end] * (length - len(ids)) if len(ids) <= length else [*ids[: length - 1], end]
