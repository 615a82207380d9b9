"""Files in and out: readers (file -> Sample) and the run folder (both ways)."""
