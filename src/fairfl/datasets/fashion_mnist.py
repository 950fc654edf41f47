"""Fashion-MNIST (Xiao et al., 2017): 70,000 images of clothes, dealt to clients or as AFL has it.

AFL (Mohri et al., 2019) and the q-FFL paper's comparison with it take three classes that are easily
confused, one client each, with the published training and test images.
"""

import numpy as np
from jaxtyping import Float32, UInt8

from fairfl.clients.federated import FederatedData
from fairfl.clients.partition import dealt
from fairfl.datasets.files import File
from fairfl.datasets.idx import Number, spread
from fairfl.datasets.stored import Arrays

WEB = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
DIGESTS = {
    "train-images-idx3": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
    "train-labels-idx1": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
    "t10k-images-idx3": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    "t10k-labels-idx1": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
}
FILES = tuple(
    File("fashion_mnist", f"{name}-ubyte.gz", f"{WEB}/{name}-ubyte.gz", f"sha256:{digest}")
    for name, digest in DIGESTS.items()
)
CLASSES = np.array(
    ["T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Boot"]
)
AFL_CLASSES = (0, 2, 6)
PART = 500


def build(
    arrays: Arrays,
    seed: int,
    partition: str = "dirichlet",
    clients: Number = 100,
    alpha: Number = 0.1,
) -> FederatedData:
    """Clothes dealt to clients by label skew, unless another partition is asked for."""
    return spread(arrays, CLASSES, seed, partition, clients, alpha)


def build_afl(arrays: Arrays, seed: int) -> FederatedData:  # noqa: ARG001  nothing is drawn
    """T-shirts, pullovers and shirts, a client each: (v - mean) / (deviation + .001) per pixel.

    Mean and deviation are those of all training images, of all ten classes, as in the reference.
    """
    images, labels, trained = arrays["images"], arrays["labels"], int(arrays["trained"])
    mean, deviation = _moments(images[:trained])
    rows = np.flatnonzero(np.isin(labels, AFL_CLASSES))
    classes = np.searchsorted(AFL_CLASSES, labels[rows])
    names = CLASSES[list(AFL_CLASSES)]
    whole = FederatedData(
        x=np.concatenate([_scaled(images[part], mean, deviation) for part in _parts(rows)]),
        y=classes.astype(np.int32),
        offsets=np.array([0, len(rows)]),
        ids=("all",),
        task="multiclass",
        classes=names,
        roles=np.where(rows < trained, 0, 2).astype(np.int8),
    )
    return dealt(whole, classes, tuple(names.tolist()))


def _parts(rows: np.ndarray) -> list[np.ndarray]:
    """Some at a time, because images are eight times as large while they are scaled."""
    return np.array_split(rows, -(-len(rows) // PART))


def _scaled(
    pixels: UInt8[np.ndarray, "images pixels"], mean: np.ndarray, deviation: np.ndarray
) -> Float32[np.ndarray, "images pixels"]:
    return ((pixels - mean) / (deviation + 0.001)).astype(np.float32)


def _moments(pixels: UInt8[np.ndarray, "images pixels"]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of each pixel; sums of bytes and their squares are whole and exact."""
    mean = pixels.sum(axis=0, dtype=np.int64) / len(pixels)
    squares = np.square(pixels, dtype=np.uint16).sum(axis=0, dtype=np.int64) / len(pixels)
    return mean, np.sqrt(squares - mean**2)
