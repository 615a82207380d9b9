"""What every layer uses: samples, scores, signatures, the metric protocol, errors."""
