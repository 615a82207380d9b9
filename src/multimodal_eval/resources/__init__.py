"""Resources that are too large to ship, with their sources, licences and checksums."""
