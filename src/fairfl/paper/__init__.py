"""The paper: its published numbers, and its theory as executable checks."""

from fairfl.paper import theory
from fairfl.paper.published import Published, published

__all__ = ["Published", "published", "theory"]
