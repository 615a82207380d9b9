"""Input readers (file -> Sample), run folders, and labels."""
