"""Write runs in the formats of other programs. `registry` lists the formats, one module each."""
