"""Encoders and language models behind small protocols; the only room that loads onnxruntime or torch."""
