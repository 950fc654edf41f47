"""Data that lives with clients."""

from fairfl.clients.federated import FederatedData, Rows, Split, from_arrays

__all__ = ["FederatedData", "Rows", "Split", "from_arrays"]
