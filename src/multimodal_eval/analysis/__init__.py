"""From stored rows to conclusions: columns, averages, slices, pairing, comparisons, rankings."""
