"""CLARITY: how clear an answer is, labelled by several annotators."""
