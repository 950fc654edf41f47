"""fairfl: train one model across many clients so that it serves every one of them."""

from fairfl import datasets, models
from fairfl.algorithms import (
    Algorithm,
    aaggff,
    afl,
    fedavg,
    fedfv,
    fedmgda,
    fedprox,
    fedsgd,
    fixed_step,
    gifair,
    propfair,
    q_fedavg,
    q_fedsgd,
    rules,
    semi_vred,
    superquantile,
    term,
    with_rule,
    with_server,
)
from fairfl.choice import Choice, DeviceQ, choose_q, choose_rate, device_q, frontier
from fairfl.clients import (
    FederatedData,
    from_arrays,
    from_leaf,
    from_mat,
    from_table,
    load_table,
    partition,
    to_leaf,
)
from fairfl.comparison import Comparison, compare, load_comparison
from fairfl.metrics import Fairness, fairness, interval, paired_interval
from fairfl.models import Model
from fairfl.paper import theory
from fairfl.runs import Prediction, Result, load_run, predict, train
from fairfl.runs.tracking import tracker

__version__ = "0.1.0"

__all__ = [
    "Algorithm",
    "Choice",
    "Comparison",
    "DeviceQ",
    "Fairness",
    "FederatedData",
    "Model",
    "Prediction",
    "Result",
    "aaggff",
    "afl",
    "choose_q",
    "choose_rate",
    "compare",
    "datasets",
    "device_q",
    "fairness",
    "fedavg",
    "fedfv",
    "fedmgda",
    "fedprox",
    "fedsgd",
    "fixed_step",
    "from_arrays",
    "from_leaf",
    "from_mat",
    "from_table",
    "frontier",
    "gifair",
    "interval",
    "load_comparison",
    "load_run",
    "load_table",
    "models",
    "paired_interval",
    "partition",
    "predict",
    "propfair",
    "q_fedavg",
    "q_fedsgd",
    "rules",
    "semi_vred",
    "superquantile",
    "term",
    "theory",
    "to_leaf",
    "tracker",
    "train",
    "with_rule",
    "with_server",
]
