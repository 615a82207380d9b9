"""What makes a run's numbers doubtful: facts of each sample, then findings over all of them. No score is changed."""
