"""The provider `colours:NAME`, a model that names the mean colour of an image."""

from __future__ import annotations

import io

from PIL import Image, ImageStat

from mmeval_colours import COLOURS, __version__
from multimodal_eval import Answer, Generator, Request
from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.generate.protocol import RejectedError


class Colours:
    """Answers with the colour that is nearest to the mean of the image."""

    is_cacheable = True  # equal requests get equal answers; the label names the version of the code

    def __init__(self, model: str) -> None:
        self.label = f"colours:{model}@{__version__}"

    async def answer(self, request: Request) -> Answer:
        """The name of the colour of the last image; a request without an image is rejected."""
        images = [part.content for part in request.media if part.kind == "image" and part.content is not None]
        if not images:
            raise RejectedError("the model `colours` needs an image")
        with Image.open(io.BytesIO(images[-1])) as image:
            mean = ImageStat.Stat(image.convert("RGB")).mean
        nearest = min(COLOURS, key=lambda name: sum((a - b) ** 2 for a, b in zip(COLOURS[name], mean, strict=True)))
        return Answer(f"The tile is {nearest}.")


def colours(model: str, config: GenerationConfig) -> Generator:
    """The generator of `--model colours:NAME`."""
    return Colours(model)
