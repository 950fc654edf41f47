"""Comparing: methods side by side on one data set, tuned alike, with paired differences."""

from fairfl.comparison.comparison import Comparison
from fairfl.comparison.differences import Difference
from fairfl.comparison.folder import load_comparison
from fairfl.comparison.side_by_side import compare
from fairfl.comparison.tuning import Tuned

__all__ = ["Comparison", "Difference", "Tuned", "compare", "load_comparison"]
