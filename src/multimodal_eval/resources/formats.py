"""Formats of model files: those with weights only, and those that may run code when opened."""

from __future__ import annotations

WEIGHTS = (".safetensors", ".onnx", ".gguf")
UNSAFE = (".bin", ".pt", ".pth", ".pkl", ".ckpt", ".h5", ".msgpack")
# Paths of the towers, `text` and `vision`, in CLIP exports, in full precision.
ONNX_TOWERS = ("onnx/{}_model.onnx", "{}_model.onnx")
