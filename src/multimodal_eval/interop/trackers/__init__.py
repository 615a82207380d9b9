"""Experiment trackers: runs sent through the tracker's own client, one module per tracker."""
