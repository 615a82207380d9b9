"""Files of models: which hold numbers alone, and which may run code when they are opened."""

from __future__ import annotations

WEIGHTS = (".safetensors", ".onnx", ".gguf")
UNSAFE = (".bin", ".pt", ".pth", ".pkl", ".ckpt", ".h5", ".msgpack")
# Where exports of CLIP keep their towers, `text` and `vision`, in full precision.
ONNX_TOWERS = ("onnx/{}_model.onnx", "{}_model.onnx")
