"""Text processing: tokenizers, document frequencies, languages, parts of speech, synonyms."""
