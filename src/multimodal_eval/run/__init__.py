"""A run: plan, read, fit, score part by part, aggregate."""
