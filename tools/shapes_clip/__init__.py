"""A tiny CLIP trained from scratch on drawn scenes of coloured shapes, for the demo and the tests.

Drawing and wording (`scenes`, `drawing`, `captions`) need only Pillow and numpy. Training needs torch and transformers.
"""
