"""The import paths that CLARITY's guide names; the code is in `contests.clarity` and `interop`."""
