"""Things too large to ship: where they come from, under which licence, and how they are checked."""
