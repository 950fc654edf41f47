"""Reports: what a run found, for people."""
