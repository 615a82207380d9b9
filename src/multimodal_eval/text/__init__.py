"""Text: tokenizers and document frequencies."""
