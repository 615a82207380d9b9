"""Models in torch on a GPU: speed against the usual libraries, memory, and equality with the CPU.

    python bench/models_gpu.py [--cpu] [--small] [--only sentences,perplexity,sentences_bf16,clip,tokens,billion,…]

sentences: all-MiniLM-L6-v2's shape against sentence-transformers' `encode` with its best batch size. tokens: the
vectors that bertscore needs. perplexity: SmolLM2-135M's shape against transformers, in padded batches as one would
write them, in the order of the file and sorted by length; `billion` is a llama with 1.2 billion parameters.
conversations: a LLaVA with the towers of CLIP ViT-B/32 and SmolLM2-135M, in batches and one at a time. clip: the texts
of CLIP ViT-B/32. processor: sentences on the CPU in every number format (with `--cpu`, and `taskset` for fewer cores).

Weights are random, made from the published configurations, and so are texts: words of syllables with the frequencies of
a language, in a vocabulary of word pieces. Nothing is downloaded. `--small` is quick on a CPU and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ["MMEVAL_CACHE"] = "off"

import numpy as np
import torch
import transformers
from PIL import Image
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from multimodal_eval.core.conversation import Part, Turn
from multimodal_eval.models.language import causal, conversation_torch
from multimodal_eval.models.sentences import by_name
from multimodal_eval.models.source import find_model

SECTIONS = ("sentences", "perplexity", "sentences_bf16", "clip", "tokens", "billion", "conversations")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<image>", "<eos>")
MINILM = {"vocab_size": 30522, "hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12}
SMOLLM = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9}
BILLION = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32}
TEMPLATE = (
    "{% for m in messages %}{% for p in m['content'] %}{% if p['type'] == 'text' %}{{ p['text'] }}{% else %}<image>"
    "{% endif %}{% endfor %} {% endfor %}"
)
warnings.filterwarnings("ignore", category=DeprecationWarning)
rng = np.random.default_rng(0)
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def words() -> list[str]:
    syllables = [c + v for c in "bcdfghklmnprstvw" for v in "aeiou"] + ["st", "ing", "er", "ed", "ly"]
    drawn = ("".join(rng.choice(syllables, int(rng.integers(1, 5)))) for _ in range(40_000))
    return list(dict.fromkeys(drawn))


WORDS = words()
SHARES = (1 / np.arange(1, len(WORDS) + 1) ** 1.1) / (1 / np.arange(1, len(WORDS) + 1) ** 1.1).sum()


def texts(count: int, low: int, high: int) -> list[str]:
    lengths = rng.integers(low, high, count)
    drawn = iter(rng.choice(len(WORDS), int(lengths.sum()), p=SHARES))
    return [" ".join(WORDS[next(drawn)] for _ in range(length)) for length in lengths]


def tokenizer() -> Tokenizer:
    """Word pieces: 25,000 words, and letters for the others."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = [*SPECIAL, *WORDS[:25_000], *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {name: number for number, name in enumerate(dict.fromkeys(names))}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.add_special_tokens(list(SPECIAL))
    ends = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return made


def fast_tokenizer(**named: Any) -> Any:
    names = {"unk": "[UNK]", "pad": "[PAD]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    options = {f"{kind}_token": name for kind, name in names.items()}
    made = tokenizer()
    if named:  # a language model has no [CLS]
        made.post_processor = processors.TemplateProcessing(single="$A")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=512, **options, **named)


def random_weights(model: Any, scale: float = 2.0) -> Any:
    """Larger weights than at the start of training, so that every input matters."""
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.normal_(0, scale * 0.02)
    return model.eval()


def synchronize() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def seconds(work: Callable[..., Any], *arguments: Any, rounds: int = 3, **named: Any) -> float:
    """The median time, after one round to warm up. With 0 rounds, the time of one round without warming up."""
    times = []
    for _ in range(1 if SMALL or not rounds else rounds + 1):
        synchronize()
        start = time.perf_counter()
        work(*arguments, **named)
        synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:] or times)


def each(work: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> None:
    for row in arguments:
        work(*row)


def peak() -> str:
    if DEVICE != "cuda":
        return ""
    used = torch.cuda.max_memory_allocated() / 2**30
    torch.cuda.reset_peak_memory_stats()
    return f"  peak {used:5.1f} GiB"


def show(name: str, count: int, took: float, base: float, unit: str = "texts") -> None:
    print(f"  {name:44} {count / took:12,.0f} {unit}/s {base / took:6.2f}x{peak()}", flush=True)


def failed(name: str, fault: Exception) -> None:
    print(f"  {name:44} failed: {type(fault).__name__}: {str(fault).splitlines()[0][:120]}", flush=True)


# --- sentences


def minilm(folder: Path) -> None:
    layers = {**MINILM, "num_hidden_layers": 2} if SMALL else MINILM
    config = transformers.BertConfig(**layers, intermediate_size=1536, max_position_embeddings=512)
    random_weights(transformers.BertModel(config, add_pooling_layer=False)).save_pretrained(folder)
    fast_tokenizer().save_pretrained(folder)
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 256}))


def peer(folder: Path, dtype: Any) -> Any:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers import models as parts

    body = parts.Transformer(str(folder), max_seq_length=256)
    pooling = parts.Pooling(384, pooling_mode="mean")
    return SentenceTransformer(modules=[body, pooling, parts.Normalize()], device=DEVICE).to(dtype)


def sentences_bf16(folder: Path) -> None:
    sentences(folder, "+bf16", torch.bfloat16)


def sentences(folder: Path, suffix: str = "", dtype: Any = torch.float32) -> None:
    minilm(folder)
    captions = texts(200 if SMALL else 60_000, 6, 16)
    mixed = [*texts(120 if SMALL else 10_000, 5, 16), *texts(30 if SMALL else 5_000, 16, 200)]
    expected = by_name.find(str(folder)).open().encode([*captions[-500:], *mixed[-500:]])
    ours: Any = by_name.find(f"torch:{folder}{suffix}").open()
    theirs = peer(folder, dtype)
    vectors = ours.encode([*captions[-500:], *mixed[-500:]])
    other = theirs.encode(captions[-500:], show_progress_bar=False)
    count = len(captions[-500:])
    alone = ours.encode(captions[-500:])
    print(f"\nsentences, {ours.label}: largest difference of a coordinate from onnxruntime on the CPU "
          f"{np.abs(vectors - expected).max():.1e}, smallest cosine {(vectors * expected).sum(1).min():.6f}; "
          f"in another batch {np.abs(alone - vectors[:count]).max():.1e}; "
          f"sentence-transformers' {np.abs(other - expected[:count]).max():.1e}")  # fmt: skip
    for title, batch in (("captions", captions), ("a third long", mixed)):
        tokens = sum(len(row) for row in ours.inner.texts.ids(batch))
        print(f" {title}: {len(batch):,} texts, {tokens:,} tokens")
        sizes = (32,) if SMALL else (512, 4096)
        theirs.encode(batch[:4096], batch_size=4096, show_progress_bar=False)  # warms up
        times = {
            size: seconds(theirs.encode, batch, batch_size=size, show_progress_bar=False, rounds=0) for size in sizes
        }
        size = min(times, key=times.__getitem__)
        show(f"sentence-transformers, batches of {size}", len(batch), times[size], times[size])
        took = seconds(ours.encode, batch)
        show("ours", len(batch), took, times[size])
        print(f"    ours: {tokens / took:,.0f} tokens/s; tokenizing alone "
              f"{len(batch) / seconds(ours.inner.texts.ids, batch):,.0f} texts/s; network alone "
              f"{len(batch) / network_alone(ours.inner, batch):,.0f} texts/s")  # fmt: skip
    few = captions[:64]
    base = seconds(theirs.encode, few, batch_size=64, show_progress_bar=False, rounds=20)
    show("sentence-transformers, calls of 64", 64, base, base)
    show("ours, calls of 64", 64, seconds(ours.encode, few, rounds=20), base)


def network_alone(encoder: Any, batch: list[str]) -> float:
    """Seconds without tokenizing."""
    ready = list(encoder._tokenized(batch))
    original = encoder._tokenized
    encoder._tokenized = lambda _: iter(ready)
    try:
        return seconds(encoder.encode, batch)
    finally:
        encoder._tokenized = original


def processor_formats(folder: Path) -> None:
    """On the CPU: sentence-transformers, and ours in each number format, in turn."""
    minilm(folder)
    batch = [*texts(100 if SMALL else 2_000, 6, 16), *texts(10 if SMALL else 200, 16, 200)]
    theirs = peer(folder, torch.float32)
    jobs: dict[str, Callable[[list[str]], Any]] = {
        "sentence-transformers, batches of 32": lambda rows: theirs.encode(rows, show_progress_bar=False),
        "ours, onnxruntime": by_name.find(str(folder)).open().encode,
        "ours, onnxruntime int8": by_name.find(f"{folder}+int8").open().encode,
        "ours, torch": by_name.find(f"torch:{folder}").open().encode,
        "ours, torch bf16": by_name.find(f"torch:{folder}+bf16").open().encode,
    }
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(1 if SMALL else 3):
        for name, work in jobs.items():
            times[name].append(seconds(work, batch, rounds=0))
    flags = set(Path("/proc/cpuinfo").read_text().partition("flags")[2].split("\n")[0].split())
    known = sorted(flags & {"avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8"})
    print(f"\nsentences on the CPU ({' '.join(known)}), {torch.get_num_threads()} threads, {len(batch):,} texts")
    base = statistics.median(times["sentence-transformers, batches of 32"])
    for name, taken in times.items():
        show(name, len(batch), statistics.median(taken), base)


def tokens(folder: Path) -> None:
    """The vectors of bertscore, and the metric itself."""
    minilm(folder)
    captions = texts(100 if SMALL else 10_000, 6, 16)
    exact = by_name.find_tokens(str(folder)).open()
    expected = exact.encode(captions[:1000], 4 if not SMALL else 1)
    base = seconds(exact.encode, captions, 4, rounds=1) if not SMALL else 1.0
    print("\ntokens of bertscore, layer 4")
    show("onnxruntime on the CPU", len(captions), base, base)
    for suffix in ("", "+bf16"):
        ours = by_name.find_tokens(f"torch:{folder}{suffix}").open()
        vectors = ours.encode(captions[:1000], 4 if not SMALL else 1)
        apart = max(np.abs(a.vectors - b.vectors).max() for a, b in zip(vectors, expected, strict=True))
        show(f"{ours.label.partition('+')[2]}, difference {apart:.0e}", len(captions),
             seconds(ours.encode, captions, 4, rounds=2), base)  # fmt: skip


# --- language models


def llama(folder: Path, shape: dict[str, int], key_heads: int, vocabulary: int, dtype: Any) -> None:
    layers = {**shape, "num_hidden_layers": 2, "intermediate_size": 512} if SMALL else shape
    config = transformers.LlamaConfig(
        **layers, num_key_value_heads=key_heads, vocab_size=vocabulary, tie_word_embeddings=True,
        max_position_embeddings=8192, bos_token_id=1, eos_token_id=6)  # fmt: skip
    with torch.device(DEVICE):
        model = transformers.LlamaForCausalLM(config)
    random_weights(model, 1.0).to(dtype).save_pretrained(folder)
    fast_tokenizer(eos_token="<eos>").save_pretrained(folder)


def plain(model: Any, rows: list[list[int]], size: int, *, is_sorted: bool) -> Callable[[], list[Any]]:
    """Log-probabilities with transformers: padded batches with a mask, the logits of all positions."""
    order = sorted(range(len(rows)), key=lambda n: len(rows[n])) if is_sorted else list(range(len(rows)))

    def work() -> list[Any]:
        scores: list[Any] = [None] * len(rows)
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(rows[n]) for n in batch], batch_first=True).to(DEVICE)
            lengths = torch.tensor([len(rows[n]) for n in batch], device=DEVICE)
            mask = (torch.arange(ids.shape[1], device=DEVICE)[None] < lengths[:, None]).long()
            with torch.inference_mode():
                logits = model(ids, attention_mask=mask).logits[:, :-1].float().log_softmax(-1)
                chosen = logits.gather(2, ids[:, 1:, None])[:, :, 0].cpu().numpy()
            for n, row in zip(batch, chosen, strict=True):
                scores[n] = row[: len(rows[n]) - 1]
        return scores

    return work


def perplexity(folder: Path, shape: dict[str, int] = SMOLLM, key_heads: int = 3, vocabulary: int = 49_152) -> None:
    billion = shape is BILLION
    llama(folder, shape, key_heads, vocabulary, torch.bfloat16 if billion else torch.float32)
    scale = 0.2 if billion else 1.0
    sets = {
        "answers": texts(20 if SMALL else int(3_000 * scale), 3, 60),
        "documents": texts(2 if SMALL else int(24 * scale), 200, 1500),
    }
    few = sets["answers"][: 10 if SMALL else 100]
    expected = None if billion else causal.find(str(folder)).open().log_probabilities(few)
    for suffix, dtype in (("", torch.float32), ("+bf16", torch.bfloat16)):
        entry = causal.find(f"torch:{folder}{suffix}")
        started = time.perf_counter()
        ours = entry.open()
        took = time.perf_counter() - started
        print(f"\nperplexity, {'llama with 1.2 billion' if billion else 'SmolLM2-135M'}, {entry.label}, "
              f"opened in {took:.1f} s")  # fmt: skip
        if expected is not None:
            scored = ours.log_probabilities(few)
            apart = max(np.abs(a - b).max() for a, b in zip(scored, expected, strict=True))
            print(f" {len(few)} texts: largest difference of a log-probability from the CPU {apart:.1e}")
        theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(DEVICE).eval()
        for title, batch in sets.items():
            compare_perplexities(theirs, ours, title, batch)
        del ours, theirs
        causal.CAUSAL_LMS.forget()


def compare_perplexities(theirs: Any, ours: Any, title: str, batch: list[str]) -> None:
    rows = ours.inner.tokens(batch)
    count = sum(map(len, rows))
    print(f" {title}: {len(rows):,} texts, {count:,} tokens, the longest {max(map(len, rows)):,}")
    base = 0.0
    for is_sorted in (False, True):
        times = {}
        for size in (4,) if SMALL else (64, 128) if title == "answers" else (4, 16):
            name = f"transformers, {'sorted' if is_sorted else 'file order'}, batches of {size}"
            try:
                plain(theirs, rows[:size], size, is_sorted=False)()  # warms up
                times[name] = seconds(plain(theirs, rows, size, is_sorted=is_sorted), rounds=0)
            except torch.OutOfMemoryError as fault:
                failed(name, fault)
                torch.cuda.empty_cache()
        name = min(times, key=times.__getitem__)
        base = base or times[name]
        show(name, count, times[name], base, "tokens")
    firsts = [1] * len(rows)
    show("ours", count, seconds(ours.inner.score, rows, firsts, rounds=2), base, "tokens")
    show("ours, from texts", count, seconds(ours.log_probabilities, batch, rounds=2), base, "tokens")


def billion(folder: Path) -> None:
    perplexity(folder, BILLION, 8, 30_000 if SMALL else 128_256)


# --- conversations


def conversations(folder: Path) -> None:
    names = fast_tokenizer(eos_token="<eos>", extra_special_tokens=["<image>"])
    layers = 2 if SMALL else 12
    vision = transformers.CLIPVisionConfig(
        image_size=224, patch_size=32, hidden_size=768, intermediate_size=3072, num_attention_heads=12,
        num_hidden_layers=layers)  # fmt: skip
    text = {**SMOLLM, "num_hidden_layers": 2} if SMALL else SMOLLM
    config = transformers.LlavaConfig(
        vision_config=vision, image_token_id=names.convert_tokens_to_ids("<image>"), vision_feature_layer=-1,
        text_config=transformers.LlamaConfig(**text, num_key_value_heads=3, vocab_size=49_152,
                                             max_position_embeddings=8192))  # fmt: skip
    edge = {"size": {"shortest_edge": 224}, "crop_size": {"height": 224, "width": 224}}
    processor = transformers.LlavaProcessor(
        image_processor=transformers.CLIPImageProcessor(**edge), tokenizer=names, patch_size=32,
        vision_feature_select_strategy="default", num_additional_image_tokens=1, chat_template=TEMPLATE)  # fmt: skip
    random_weights(transformers.LlavaForConditionalGeneration(config), 1.0).save_pretrained(folder)
    processor.save_pretrained(folder)
    count = 6 if SMALL else 192
    images = [Image.fromarray(rng.integers(0, 256, (224, 224, 3)).astype(np.uint8)) for _ in range(count)]
    turns = [
        [Turn("user", (Part("image", image), Part("text", question)))]
        for image, question in zip(images, texts(count, 8, 40), strict=True)
    ]
    answers = texts(count, 5, 30)
    exact = None
    for suffix in ("float32", "bf16"):
        model = conversation_torch.TorchConversationLM(find_model(str(folder)), suffix)
        asked = [model._asked(turn, answer) for turn, answer in zip(turns, answers, strict=True)]
        alone = [model.score_alone(row) for row in asked]
        together = model.batches.scored(iter(asked))
        apart = max(np.abs(a - b).max() for a, b in zip(alone, together, strict=True))
        base = seconds(each, model.score_alone, [(row,) for row in asked], rounds=1)
        print(f"\nconversations, {model.label}: batched {model.batches.can_batch}, difference of a batch {apart:.1e}")
        show("one at a time", count, base, base, "answers")
        show("in batches", count, seconds(model.batches.scored, asked, rounds=2), base, "answers")
        took = seconds(each, model._asked, list(zip(turns[:64], answers[:64], strict=True)), rounds=1)
        few = min(64, count)
        show("the processor of transformers alone", few, took, base * few / count, "answers")
        exact = exact or alone
        print(f"    from float32: {max(np.abs(a - b).max() for a, b in zip(alone, exact, strict=True)):.1e}")


# --- CLIP


class WordIds:
    """One token per word, between CLIP's start and end."""

    def __init__(self) -> None:
        self.numbers = {word: number for number, word in enumerate(WORDS)}

    def ids(self, batch: Sequence[str]) -> list[list[int]]:
        return [[49406, *(self.numbers[word] for word in text.split()), 49407] for text in batch]

    def are_cut(self, batch: Sequence[str]) -> list[bool]:
        return [False] * len(batch)


def usual_clip_texts(towers: Any, rows: list[list[int]], size: int) -> None:
    """The texts with transformers: padded batches in the order of the file."""
    for start in range(0, len(rows), size):
        tensors = [torch.tensor(row) for row in rows[start : start + size]]
        ids = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=49407).to(DEVICE)
        with torch.inference_mode():
            out = towers.get_text_features(ids)
            getattr(out, "pooler_output", out).float().cpu().numpy()


def clip(_: Path) -> None:
    from multimodal_eval.models.clip.on_torch import TorchClip
    from multimodal_eval.models.clip.preprocessing import ClipImageSettings, Preprocessing

    layers = 2 if SMALL else 12
    text = {"hidden_size": 512, "intermediate_size": 2048, "num_attention_heads": 8, "num_hidden_layers": layers}
    model = random_weights(transformers.CLIPModel(transformers.CLIPConfig(text_config=text)))
    batch, reader = texts(200 if SMALL else 30_000, 6, 16), WordIds()
    edge = {"size": {"shortest_edge": 224}, "crop_size": {"height": 224, "width": 224}}
    images = Preprocessing.of(edge, ClipImageSettings)
    exact = TorchClip(model, images, reader, label="cpu", device="cpu", dtype=torch.float32).encode_texts(batch[:1000])
    for dtype in (torch.float32, torch.bfloat16):
        ours = TorchClip(model, images, reader, label="ours", device=DEVICE, dtype=dtype)
        apart = np.abs(ours.encode_texts(batch[:1000]) - exact).max()

        sizes = (64,) if SMALL else (256, 1024, 4096)
        times = [seconds(usual_clip_texts, ours.towers, reader.ids(batch), size, rounds=1) for size in sizes]
        print(f"\ntexts of CLIP, {dtype}: largest difference of a coordinate from the CPU {apart:.1e}")
        show("transformers, its best batch size", len(batch), min(times), min(times))
        show("ours", len(batch), seconds(ours.encode_texts, batch), min(times))


def sections(names: Sequence[str]) -> Iterator[tuple[str, Callable[[Path], None]]]:
    known: dict[str, Callable[[Path], None]] = {}
    known |= {"sentences": sentences, "perplexity": perplexity, "sentences_bf16": sentences_bf16, "clip": clip}
    known |= {"tokens": tokens, "billion": billion, "conversations": conversations, "processor": processor_formats}
    for name in names:
        yield name, known[name]


def main() -> None:
    global DEVICE, SMALL
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", type=lambda text: text.split(","), default=SECTIONS)
    options = parser.parse_args()
    if options.cpu:
        os.environ["MMEVAL_DEVICE"] = "cpu"
    DEVICE, SMALL = "cpu" if options.cpu or not torch.cuda.is_available() else "cuda", options.small
    device = torch.cuda.get_device_name() if DEVICE == "cuda" else "CPU"
    print(f"{device}, {len(os.sched_getaffinity(0))} cores, torch {torch.__version__}, "
          f"transformers {transformers.__version__}")  # fmt: skip
    for name, section in sections(options.only):
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            try:
                section(Path(folder))
            except Exception as fault:  # noqa: BLE001 - the other sections are worth printing
                failed(name, fault)
                traceback.print_exc()
        if DEVICE == "cuda":
            torch.cuda.empty_cache()
        print(f"({name}: {time.perf_counter() - start:.0f} s)", flush=True)


DEVICE, SMALL = "cpu", False

if __name__ == "__main__":
    main()
