"""Public data sets by name, and the paper's settings for each."""

from fairfl.datasets.defaults import PAPER_Q, Defaults, defaults
from fairfl.datasets.places import data_folder
from fairfl.datasets.registry import Description, describe, load, names, present

__all__ = [
    "PAPER_Q",
    "Defaults",
    "Description",
    "data_folder",
    "defaults",
    "describe",
    "load",
    "names",
    "present",
]
