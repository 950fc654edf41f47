"""Data that lives with clients."""

from fairfl.clients import partition
from fairfl.clients.federated import FederatedData, Rows, Split, from_arrays
from fairfl.clients.holdout import with_validation
from fairfl.clients.leaf import from_leaf, to_leaf
from fairfl.clients.mat import from_mat
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
    "from_leaf",
    "from_mat",
    "from_table",
    "load_table",
    "partition",
    "to_leaf",
    "with_validation",
]
