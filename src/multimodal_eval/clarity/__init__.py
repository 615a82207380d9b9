"""The import paths that are named in the CLARITY guide; the code is in `contests.clarity` and `interop`."""
