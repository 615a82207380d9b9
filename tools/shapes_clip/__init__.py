"""A tiny CLIP of our own, trained from scratch on drawn scenes of coloured shapes, for the demo and the tests.

Drawing and wording (`scenes`, `drawing`, `captions`) need Pillow and numpy only; training needs torch and transformers.
"""
