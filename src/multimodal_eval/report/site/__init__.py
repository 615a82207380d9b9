"""A leaderboard as a static site: pages that any file host serves, and that open from a disk as well."""
