"""The multimodal dialogue contest: its files, its score, and the perplexities that it requires."""
