"""Data that lives with clients."""

from fairfl.clients import partition
from fairfl.clients.federated import FederatedData, Rows, Split, from_arrays
from fairfl.clients.preprocessing import NewRows, Preprocessing
from fairfl.clients.tables import Table, from_table, load_table

__all__ = [
    "FederatedData",
    "NewRows",
    "Preprocessing",
    "Rows",
    "Split",
    "Table",
    "from_arrays",
    "from_table",
    "load_table",
    "partition",
]
