"""The rows of federations.py on real processes."""
