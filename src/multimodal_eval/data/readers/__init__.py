"""From files to checked samples; every problem is reported with its file and line."""
