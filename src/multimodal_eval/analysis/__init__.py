"""Analysis of stored scores: columns, averages, slices, pairing, comparisons, rankings."""
