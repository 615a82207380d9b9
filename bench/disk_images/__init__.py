"""The sections of bench/images_on_disk.py: one file per question."""
