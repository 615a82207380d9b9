"""Two small images: dog.jpg and photos/dog.jpg."""

from __future__ import annotations

from tools.site.workspace import Workspace


def prepare(work: Workspace) -> None:
    """Draw the images."""
    from PIL import Image

    (work.folder / "photos").mkdir()
    for name in ("dog.jpg", "photos/dog.jpg"):
        Image.new("RGB", (64, 48), "tan").save(work.folder / name)
