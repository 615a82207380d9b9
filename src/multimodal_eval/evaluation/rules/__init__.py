"""The rules by which answers are read and compared: one module per family, see `core.rules`.

A rule is written from the published definition and the observed behaviour of its origin. A module whose name starts
with an underscore is shared by families and is not a family itself.
"""
