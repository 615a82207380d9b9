"""Run folders as a page that a browser shows: it reads run folders only, and computes no score."""
