"""Encoders and language models behind small protocols. No other package loads onnxruntime or torch."""
