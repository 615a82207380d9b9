"""The sections of bench/models_gpu.py: one file per kind of model."""
