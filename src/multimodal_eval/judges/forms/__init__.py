"""The forms of judging, by the name that a configuration has for each."""
