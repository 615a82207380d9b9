"""A release: build the files, check what is in them, try them as a user gets them. CONTRIBUTING.md has the steps."""
