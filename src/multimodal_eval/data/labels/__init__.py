"""Labels: taxonomies, label cells, annotation tables."""
