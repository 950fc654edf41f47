"""Data that lives with clients."""

from fairfl.clients.federated import FederatedData, Rows, Split, from_arrays
from fairfl.clients.tables import from_table, load_table

__all__ = ["FederatedData", "Rows", "Split", "from_arrays", "from_table", "load_table"]
