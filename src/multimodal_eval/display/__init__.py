"""What every output has in common: blocks that hold data, a function from a result to its blocks, and renderers."""
