"""Datasets as they are published, read as samples: Hugging Face, VLMEvalKit, WebDataset and Croissant."""
