"""Human labels that are collected in the viewer: what is labelled, in which order, and how labels are stored."""
