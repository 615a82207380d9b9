"""Scripts that produce logs with other harnesses, in environments of their own. They are the fixtures of the tests."""
