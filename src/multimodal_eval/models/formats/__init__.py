"""File formats of weights, and ONNX graphs that use them."""
