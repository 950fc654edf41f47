"""MNIST (LeCun et al., 1998): 70,000 handwritten digits, dealt to clients."""

import numpy as np

from fairfl.clients.federated import FederatedData
from fairfl.datasets.files import File
from fairfl.datasets.idx import Number, spread
from fairfl.datasets.stored import Arrays

WEB = "https://ossci-datasets.s3.amazonaws.com/mnist"
DIGESTS = {
    "train-images-idx3": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
FILES = tuple(
    File("mnist", f"{name}-ubyte.gz", f"{WEB}/{name}-ubyte.gz", f"sha256:{digest}")
    for name, digest in DIGESTS.items()
)


def build(
    arrays: Arrays,
    seed: int,
    partition: str = "dirichlet",
    clients: Number = 100,
    alpha: Number = 0.1,
) -> FederatedData:
    """Digits dealt to clients by label skew, unless another partition is asked for."""
    return spread(arrays, np.arange(10), seed, partition, clients, alpha)
