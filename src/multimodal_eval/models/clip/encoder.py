"""CLIP and SigLIP run by onnxruntime, from a Hugging Face directory with safetensors or exported ONNX files.

Every component equals that of transformers within 1e-5. Texts are batched by their exact length, without padding, so
that a vector does not depend on the rest of its batch.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.core.errors import ModelError
from multimodal_eval.core.machine import cores
from multimodal_eval.models.batching import MIN_ROWS, equal_lengths, run_in_parallel
from multimodal_eval.models.clip.graphs import ClipConfig, text_graph, vision_graph
from multimodal_eval.models.clip.lazy_images import LazyImage, open_in_groups
from multimodal_eval.models.clip.preprocessing import ClipImageSettings, HandOver, Preprocessing, SiglipImageSettings
from multimodal_eval.models.formats.onnx_graph import open_exported, open_session
from multimodal_eval.models.runtime import check_runtime, open_tokenizer
from multimodal_eval.models.source import Model
from multimodal_eval.resources.catalogue import ONNX_TOWERS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    Pixels = NDArray[np.uint8]


# Tokenize texts for CLIP and SigLIP: token ids, cut to the model's length, and the position of the pooled token.
#
# Both follow transformers. CLIP needs no padding, because no token sees later ones. It pools the end token: the token
# with the highest id if the configuration says `eos_token_id: 2` (as OpenAI's do), else the first end token. SigLIP
# was trained on texts padded to the full length, sees the padding, and pools the last token.

_LEGACY_END = 2
_SETTINGS = "tokenizer_config.json"
_PUNCTUATION = str.maketrans("", "", string.punctuation)


class _TokenizerConfig(msgspec.Struct, frozen=True):
    """tokenizer_config.json. A token is a string or an object with `content`."""

    model_max_length: float | None = None
    tokenizer_class: str | None = None
    pad_token: object = None

    @property
    def pad(self) -> str | None:
        """The padding token."""
        content = self.pad_token.get("content") if isinstance(self.pad_token, dict) else self.pad_token
        return content if isinstance(content, str) else None


class ClipTexts:
    """The tokenizer of one model."""

    def __init__(self, model: Model) -> None:
        config = ClipConfig.of(model)
        has_settings = (model.folder / _SETTINGS).is_file()
        settings = model.read(_SETTINGS, _TokenizerConfig) if has_settings else _TokenizerConfig()
        self.family, self.end = config.family, config.text.eos_token_id
        self.longest = min(config.text.max_position_embeddings, int(settings.model_max_length or 1 << 30))
        self.tokenizer = open_tokenizer(model)
        self.tokenizer.enable_truncation(self.longest)
        self.tokenizer.no_padding()
        self.without_punctuation = settings.tokenizer_class in ("SiglipTokenizer", "SiglipTokenizerFast")
        if self.family == "siglip":
            pad = settings.pad or "</s>"
            self.tokenizer.enable_padding(
                length=self.longest, pad_token=pad, pad_id=self.tokenizer.token_to_id(pad) or 0
            )

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text. SigLIP's are padded to the full length, CLIP's are not."""
        prepared = [self._prepared(text) for text in texts]
        return [encoding.ids for encoding in self.tokenizer.encode_batch_fast(prepared)]

    def pooled_position(self, ids: Sequence[int]) -> int:
        """The position of the token whose vector represents the text."""
        if self.family == "siglip":
            return len(ids) - 1
        if self.end == _LEGACY_END:
            return max(range(len(ids)), key=ids.__getitem__)
        return ids.index(self.end) if isinstance(self.end, int) and self.end in ids else 0

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text is longer than the model reads. A token has a byte or more: short texts need no check."""
        return [
            len(text.encode("utf-8", "replace")) > self.longest - 2
            and bool(self.tokenizer.encode(self._prepared(text)).overflowing)
            for text in texts
        ]

    def _prepared(self, text: str) -> str:
        """SigLIP was trained on lower case, its first version also without punctuation."""
        if self.family != "siglip":
            return text
        text = text.lower()
        return re.sub(r"\s+", " ", text.translate(_PUNCTUATION)).strip() if self.without_punctuation else text


TOKENS_PER_BATCH = 256  # the states of a batch stay in the cache of a core
IMAGES_PER_BATCH = 4  # each batch runs on one thread
MIN_BATCHES = 4  # in a group of images that are opened together
_EXPORTED_OUTPUTS = {"text": ("text_embeds", "pooler_output"), "vision": ("image_embeds", "pooler_output")}


def preprocessing_of(model: Model) -> Preprocessing:
    """The preprocessing of the model's images. Its output size must match the vision tower."""
    if not (model.folder / "preprocessor_config.json").is_file() and (model.folder / "processor_config.json").is_file():
        settings = model.json("processor_config.json").get("image_processor", {})  # of transformers 5
    else:
        settings = model.json("preprocessor_config.json")
    config = ClipConfig.of(model)
    preprocess = Preprocessing.of(settings, ClipImageSettings if config.is_clip else SiglipImageSettings)
    edge = config.vision.image_size
    if (preprocess.crop or preprocess.exact) != (edge, edge):
        size = preprocess.crop or preprocess.exact or "any size"
        raise ModelError(f"{model.name!r} takes images of {edge} x {edge}, but its preprocessing produces {size}")
    return preprocess


def check(model: Model, *, int8: bool = False) -> None:
    """Refuse a model that cannot be run, without loading it."""
    check_runtime(model.name)
    ClipConfig.of(model)
    if int8 and not (model.folder / "model.safetensors").is_file():
        raise ModelError(f"{model.name!r} cannot be run as int8: that needs its weights as model.safetensors")
    model.file("tokenizer.json")
    preprocessing_of(model)
    if not (model.folder / "model.safetensors").is_file() and _exports(model) is None:
        if (model.folder / "model.safetensors.index.json").is_file():
            raise ModelError(f"the weights of {model.name!r} are split into several files: save them as one or as ONNX")
        raise ModelError(
            f"{model.folder} has neither model.safetensors nor text_model.onnx and vision_model.onnx: no weights to run"
        )


def _exports(model: Model) -> dict[str, str] | None:
    """The names of the ONNX files of both towers."""
    for pattern in ONNX_TOWERS:
        names = {tower: pattern.format(tower) for tower in ("text", "vision")}
        if all((model.folder / name).is_file() for name in names.values()):
            return names
    return None


def _verified(model: Model, name: str) -> Path:
    """The ONNX file of a tower. The files with the weights of a large one are verified too."""
    for path in (model.folder / name).parent.glob(f"{Path(name).name}_data*"):
        model.file(path.relative_to(model.folder).as_posix())
    return model.file(name)


class OnnxClip:
    """Both towers of a model. `int8` rounds the matrices of the vision tower and their inputs."""

    def __init__(self, model: Model, *, int8: bool = False) -> None:
        check(model, int8=int8)
        self.label = model.onnx_label(int8=int8)
        self.texts = ClipTexts(model)
        self.preprocess = preprocessing_of(model)
        self.hand_over = HandOver(self.preprocess)
        self.text_tower: _Tower
        self.vision_tower: _Tower
        if (model.folder / "model.safetensors").is_file():
            folder, config = model.weights.path.parent, ClipConfig.of(model)
            self.text_tower = _Tower(open_session(text_graph(model.weights, config), folder, 1))
            self.vision_tower = _Tower(open_session(vision_graph(model.weights, config, int8=int8), folder, 1))
        else:
            exports = _exports(model)
            assert exports is not None
            self.text_tower, self.vision_tower = (
                _Tower(open_exported(_verified(model, exports[tower]), 1), _EXPORTED_OUTPUTS[tower], MIN_ROWS)
                for tower in ("text", "vision")
            )

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """One unit vector per text."""
        import numpy as np

        ids = self.texts.ids(texts)
        vectors: list[Any] = [None] * len(ids)

        def run(job: tuple[list[int], list[Sequence[int]]]) -> None:
            positions, rows = job
            length = len(rows[0])
            pooled = [number * length + self.texts.pooled_position(row) for number, row in enumerate(rows)]
            array, places = np.array(rows, np.int64), np.array([*pooled, pooled[0]], np.int64)
            out = self.text_tower(ids=array, input_ids=array, pooled=places, attention_mask=np.ones_like(array))
            for position, row in zip(positions, out, strict=False):  # the first row comes again
                vectors[position] = row

        min_rows = self.text_tower.min_rows
        run_in_parallel(run, equal_lengths(ids, tokens=TOKENS_PER_BATCH, min_rows=min_rows, min_tokens=MIN_ROWS))
        return np.stack(vectors) if vectors else np.empty((0, 0), np.float32)

    def encode_images(self, images: Sequence[LazyImage]) -> Vectors:
        """One unit vector per image. An image that cannot be opened gets NaN, and its `fault` is set."""
        import numpy as np

        vectors: dict[int, Vectors] = {}

        def run(job: list[tuple[int, Pixels]]) -> None:
            arrays = [self.preprocess.normalised(pixels) for _, pixels in job]
            pixels = np.stack(arrays + arrays[:1] * (self.vision_tower.min_rows - len(arrays)))
            out = self.vision_tower(pixels=pixels, pixel_values=pixels)
            vectors.update({position: row for (position, _), row in zip(job, out, strict=False)})

        is_prepared = all(image.received is not None for image in images)
        group_size = len(images) if is_prepared else IMAGES_PER_BATCH * max(cores(), MIN_BATCHES)
        for positions, arrays in open_in_groups(images, self._opened, group_size=group_size or 1):
            ready = list(zip(positions, arrays, strict=True))
            starts = range(0, len(ready), IMAGES_PER_BATCH)
            run_in_parallel(run, [ready[start : start + IMAGES_PER_BATCH] for start in starts])
        failed = np.full_like(next(iter(vectors.values())), np.nan) if vectors else np.full(1, np.nan, np.float32)
        return np.stack([vectors.get(position, failed) for position in range(len(images))])

    def _opened(self, image: LazyImage) -> Pixels:
        return self.hand_over(image.open())

    def receive(self, pixels: Pixels) -> list[Pixels]:
        """Copies of what `hand_over` returned for several images in another process, whose memory is used again."""
        return list(pixels.copy())

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text is longer than the model reads."""
        return self.texts.are_cut(texts)


class _Tower:
    """An onnxruntime session that takes its inputs by name and returns unit vectors.

    Our graphs compute a single input as they compute many. Exported files need `min_rows` for that.
    """

    def __init__(self, session: Any, outputs: tuple[str, ...] = ("embeddings",), min_rows: int = 1) -> None:
        self.session, self.min_rows = session, min_rows
        self.inputs = {entry.name for entry in session.get_inputs()}
        available = [entry.name for entry in session.get_outputs()]
        output = next((name for name in outputs if name in available), None)
        if output is None:
            raise ModelError(
                f"the ONNX file must have an output {' or '.join(outputs)}. Got {', '.join(available)} instead."
            )
        self.output = output

    def __call__(self, **inputs: NDArray[Any]) -> Vectors:
        import numpy as np

        rows = self.session.run([self.output], {name: inputs[name] for name in inputs if name in self.inputs})[0]
        raw = np.asarray(rows, np.float32)
        vectors: Vectors = raw / np.linalg.norm(raw, axis=1, keepdims=True)
        return vectors
