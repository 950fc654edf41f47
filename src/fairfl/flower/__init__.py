"""Fair federated learning in a real deployment, on Flower."""

from fairfl.flower.client import Measured, Site, fair_client
from fairfl.flower.models import model_arrays, model_site
from fairfl.flower.orders import Orders
from fairfl.flower.sklearn import sklearn_site
from fairfl.flower.strategy import FairStrategy
from fairfl.flower.torch import torch_site
from fairfl.flower.trust import BELIEVE_ALL, Trust

__all__ = [
    "BELIEVE_ALL",
    "FairStrategy",
    "Measured",
    "Orders",
    "Site",
    "Trust",
    "fair_client",
    "model_arrays",
    "model_site",
    "sklearn_site",
    "torch_site",
]
