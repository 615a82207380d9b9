"""Ask models: requests out, replies in, one durable store. Answers and verdicts are its readers."""
