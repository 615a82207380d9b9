"""The colours of all pages: contrast in both themes, and series that colour-blind readers can tell apart."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest

from multimodal_eval.report.build import asset

# Machado, Oliveira and Fernandes (2009), severity 1: what an eye without one kind of cone sees, on linear RGB.
VISIONS = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
PAIR = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);")
COLOURS = [{name: pair[theme] for name, *pair in PAIR.findall(asset("tokens.css"))} for theme in (0, 1)]
BACKGROUNDS = ("page", "raised")
both_themes = pytest.mark.parametrize("colours", COLOURS, ids=["light", "dark"])


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(first: str, second: str) -> float:
    """The ratio of WCAG 2."""
    darker, lighter = sorted(float(linear(colour) @ TO_XYZ[1]) for colour in (first, second))
    return (lighter + 0.05) / (darker + 0.05)


def lab(light: np.ndarray) -> np.ndarray:
    xyz = TO_XYZ @ np.clip(light, 0, 1) / [0.95047, 1, 1.08883]
    root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def test_the_contrast_of_black_and_white_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@both_themes
@pytest.mark.parametrize("name", ["ink", "quiet", "accent", "good", "bad", "warning"])
def test_text_can_be_read(colours, name):
    assert min(contrast(colours[name], colours[page]) for page in BACKGROUNDS) >= 4.5


@both_themes
@pytest.mark.parametrize("name", ["good", "bad", "warning", "accent"])
def test_text_can_be_read_on_the_background_of_its_meaning(colours, name):
    assert contrast(colours[name], colours[f"{name}-page"]) >= 4.5
    assert contrast(colours["ink"], colours[f"{name}-page"]) >= 4.5


@both_themes
@pytest.mark.parametrize("name", ["focus", "neutral", *(f"series-{number}" for number in range(1, 7))])
def test_marks_can_be_seen(colours, name):
    assert contrast(colours[name], colours["page"]) >= 3


@both_themes
@pytest.mark.parametrize("vision", VISIONS)
def test_series_and_meanings_differ_for_every_reader(colours, vision):
    seen = {name: lab(VISIONS[vision] @ linear(colour)) for name, colour in colours.items()}
    series = [seen[f"series-{number}"] for number in range(1, 7)]
    for pair in (*combinations(series, 2), (seen["good"], seen["bad"])):
        assert np.linalg.norm(pair[0] - pair[1]) >= 14  # CIE 1976; about 2.3 can just be noticed


def test_pages_name_no_colour_outside_the_tokens():
    for name in ("style.css", "../viewer/assets/viewer.css"):
        assert not re.search(r"#[0-9a-f]{3,8}\b|rgba?\(|hsla?\(", asset(name))
