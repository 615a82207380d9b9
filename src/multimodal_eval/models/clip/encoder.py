"""CLIP and SigLIP run by onnxruntime, from a Hugging Face directory: safetensors, or ONNX files as they are exported.

Equal to transformers within 1e-5 in every component. Texts are batched by their exact length, without padding, so that
a vector does not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.batching import FEWEST_ROWS, equal_lengths, side_by_side
from multimodal_eval.models.clip.graphs import ClipConfig, text_graph, vision_graph
from multimodal_eval.models.clip.pictures import Picture, opened
from multimodal_eval.models.clip.preprocessing import ClipPictures, Preprocessing, SiglipPictures
from multimodal_eval.models.clip.text import ClipTexts
from multimodal_eval.models.formats.onnx_graph import open_exported, open_session
from multimodal_eval.models.source import Model
from multimodal_eval.resources.formats import ONNX_TOWERS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

TOKENS_AT_ONCE = 1024
IMAGES_AT_ONCE = 16
IMAGES_A_BATCH = 4  # by one thread
_EXPORTED_OUTPUTS = {"text": ("text_embeds", "pooler_output"), "vision": ("image_embeds", "pooler_output")}


def preprocessing_of(model: Model) -> Preprocessing:
    """The way of the model's pictures, which must end in the size that its tower takes."""
    if not (model.folder / "preprocessor_config.json").is_file() and (model.folder / "processor_config.json").is_file():
        settings = model.json("processor_config.json").get("image_processor", {})  # as transformers 5 saves both in one
    else:
        settings = model.json("preprocessor_config.json")
    config = ClipConfig.of(model)
    preprocess = Preprocessing.of(settings, ClipPictures if config.is_clip else SiglipPictures)
    edge = config.vision.image_size
    if (preprocess.crop or preprocess.exact) != (edge, edge):
        made = preprocess.crop or preprocess.exact or "pictures of any size"
        raise ModelError(f"{model.name!r} takes pictures of {edge} x {edge}, and its settings make {made} of them")
    return preprocess


def check(model: Model) -> None:
    """Refuse what cannot be run, before anything is loaded."""
    ClipConfig.of(model)
    model.file("tokenizer.json")
    preprocessing_of(model)
    if not (model.folder / "model.safetensors").is_file() and _exports(model) is None:
        if (model.folder / "model.safetensors.index.json").is_file():
            raise ModelError(f"the weights of {model.name!r} are spread over several files; save them as one, or ONNX")
        raise ModelError(
            f"{model.folder} has neither model.safetensors nor text_model.onnx and vision_model.onnx: no weights to run"
        )


def _exports(model: Model) -> dict[str, Path] | None:
    for pattern in ONNX_TOWERS:
        paths = {tower: model.folder / pattern.format(tower) for tower in ("text", "vision")}
        if all(path.is_file() for path in paths.values()):
            return paths
    return None


class OnnxClip:
    """Both towers of a model."""

    def __init__(self, model: Model) -> None:
        check(model)
        self.label = model.label
        self.texts = ClipTexts(model)
        self.preprocess = preprocessing_of(model)
        self.text_tower: _Tower
        self.vision_tower: _Tower
        if (model.folder / "model.safetensors").is_file():
            folder, config = model.weights.path.parent, ClipConfig.of(model)
            self.text_tower = _Tower(open_session(text_graph(model.weights, config), folder, 1))
            self.vision_tower = _Tower(open_session(vision_graph(model.weights, config), folder, 1))
        else:
            exports = _exports(model)
            assert exports is not None
            self.text_tower = _Tower(open_exported(exports["text"], 1), _EXPORTED_OUTPUTS["text"])
            self.vision_tower = _Tower(open_exported(exports["vision"], 1), _EXPORTED_OUTPUTS["vision"])

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text."""
        import numpy as np

        ids = self.texts.ids(texts)
        vectors: list[Any] = [None] * len(ids)

        def run(job: tuple[list[int], list[Sequence[int]]]) -> None:
            positions, rows = job
            length = len(rows[0])
            speakers = [number * length + self.texts.speaker(row) for number, row in enumerate(rows)]
            array = np.array(rows, np.int64)
            out = self.text_tower(
                ids=array, input_ids=array, pooled=np.array(speakers, np.int64), attention_mask=np.ones_like(array)
            )
            for position, row in zip(positions, out, strict=False):  # a lone row was doubled
                vectors[position] = row

        side_by_side(run, equal_lengths(ids, tokens=TOKENS_AT_ONCE))
        return np.stack(vectors) if vectors else np.empty((0, 0), np.float32)

    def encode_images(self, pictures: Sequence[Picture]) -> Vectors:
        """One unit vector a picture; NaN, and the picture's `fault`, where it could not be opened."""
        import numpy as np

        vectors: dict[int, Vectors] = {}

        def run(job: list[tuple[int, Vectors]]) -> None:
            arrays = [array for _, array in job]
            pixels = np.stack(arrays + arrays[:1] * (FEWEST_ROWS - len(arrays)))
            out = self.vision_tower(pixels=pixels, pixel_values=pixels)
            vectors.update({position: row for (position, _), row in zip(job, out, strict=False)})

        for positions, arrays in opened(pictures, self.preprocess, at_once=IMAGES_AT_ONCE):
            ready = list(zip(positions, arrays, strict=True))
            side_by_side(run, [ready[start : start + IMAGES_A_BATCH] for start in range(0, len(ready), IMAGES_A_BATCH)])
        failed = np.full_like(next(iter(vectors.values())), np.nan) if vectors else np.full(1, np.nan, np.float32)
        return np.stack([vectors.get(position, failed) for position in range(len(pictures))])

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Which texts are longer than what the model reads."""
        return self.texts.are_cut(texts)


class _Tower:
    """A session with its inputs picked by name, and unit vectors out."""

    def __init__(self, session: Any, outputs: tuple[str, ...] = ("embeddings",)) -> None:
        self.session = session
        self.inputs = {entry.name for entry in session.get_inputs()}
        there = [entry.name for entry in session.get_outputs()]
        found = next((name for name in outputs if name in there), None)
        if found is None:
            raise ModelError(f"the ONNX file gives {', '.join(there)}, and none of {', '.join(outputs)}")
        self.output = found

    def __call__(self, **inputs: NDArray[Any]) -> Vectors:
        import numpy as np

        rows = self.session.run([self.output], {name: inputs[name] for name in inputs if name in self.inputs})[0]
        raw = np.asarray(rows, np.float32)
        vectors: Vectors = raw / np.linalg.norm(raw, axis=1, keepdims=True)
        return vectors
