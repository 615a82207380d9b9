"""What every room speaks of: samples, scores, signatures, the metric protocol, errors."""
