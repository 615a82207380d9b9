"""Scene graphs of captions: the objects, attributes and relations that SPICE compares."""
