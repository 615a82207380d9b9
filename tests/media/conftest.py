"""A folder with images inside and outside it."""

from __future__ import annotations

import pytest

from tests.media.image_files import encoded, gradient


@pytest.fixture
def folder(tmp_path):
    """data/in.png, and outside.png beside data/."""
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "in.png").write_bytes(encoded(gradient()))
    (tmp_path / "outside.png").write_bytes(encoded(gradient()))
    return tmp_path / "data"
