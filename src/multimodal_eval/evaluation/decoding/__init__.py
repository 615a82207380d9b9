"""Images read, checked, decoded and prepared by other processes, and handed over in shared memory."""
