"""HTML pages over run folders: the report and the viewer. They read run folders and compute no scores."""
