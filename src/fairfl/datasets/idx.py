"""Images as MNIST and its relatives publish them: two idx files each to train and to test."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from fairfl.clients.federated import FederatedData
from fairfl.clients.partition import Number, dealt, dirichlet, iid, power_law, shards
from fairfl.datasets.files import Paths, contents
from fairfl.datasets.stored import Arrays

PARTS = ("train", "t10k")

PARTITIONS = ("dirichlet", "iid", "power-law", "shards")

PART = 100
"""Images that are counted at a time."""

LEAST = 10
"""Rows of the smallest client, so that it has one to validate on and one to test on."""


def read(paths: Paths) -> Arrays:
    """All images, those to train with first, one row of bytes each; `trained` counts them."""
    images = [idx(paths[f"{part}-images-idx3-ubyte.gz"], 3) for part in PARTS]
    labels = [idx(paths[f"{part}-labels-idx1-ubyte.gz"], 1) for part in PARTS]
    for part, x, y in zip(PARTS, images, labels, strict=True):
        if len(x) != len(y):
            raise ValueError(
                f"the {part} files hold {len(x):,} images but {len(y):,} labels; they do not "
                "belong together, so copy or download them again"
            )
    return {
        "images": np.concatenate([x.reshape(len(x), -1) for x in images]),
        "labels": np.concatenate(labels),
        "trained": np.array(len(labels[0])),
    }


def whole(arrays: Arrays) -> dict[str, int | float]:
    """What the files hold: images to train on and to test on, and the moments of the former's
    pixels, from 0 for black to 1."""
    trained = int(arrays["trained"])
    mean, deviation = _moments(arrays["images"][:trained])
    return {
        "training images": trained,
        "test images": len(arrays["labels"]) - trained,
        "mean of pixels": mean / 255,
        "deviation of pixels": deviation / 255,
    }


def idx(path: Path, dimensions: int) -> UInt8[np.ndarray, "..."]:
    """An idx file of bytes: 0, 0, 8, the number of dimensions, their sizes, the values.

    >>> import pathlib, tempfile
    >>> from fairfl.datasets.idx import idx
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labels")
    ...     _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    ...     idx(path, dimensions=1).tolist()
    [7, 2, 1]
    """
    content = contents(path)
    start = 4 + 4 * dimensions
    if len(content) < start or content[:4] != bytes([0, 0, 8, dimensions]):
        raise ValueError(
            f"{str(path)!r} is no idx file of bytes in {dimensions} dimensions; copy or download "
            "it again"
        )
    shape = [int.from_bytes(content[at : at + 4], "big") for at in range(4, start, 4)]
    values = np.frombuffer(content, np.uint8, offset=start)
    if values.size != math.prod(shape):
        raise ValueError(
            f"{str(path)!r} holds {values.size:,} bytes of values but says that it has "
            f"{math.prod(shape):,}; copy or download it again"
        )
    return values.reshape(shape)


def spread(
    arrays: Arrays,
    classes: np.ndarray,
    seed: int,
    partition: str,
    clients: Number,
    alpha: Number,
) -> FederatedData:
    """All images, (v - mean) / deviation over the pixels of the training images, dealt to clients.

    Training and test images are pooled: a client's test images are then from its own mixture of
    classes, and every seed draws the split.
    """
    pixels, labels = arrays["images"], arrays["labels"].astype(np.int32)
    owners = _owners(labels, partition, clients, alpha, seed)
    whole = FederatedData(
        x=pixels,
        y=labels,
        offsets=np.array([0, len(labels)]),
        ids=("all",),
        task="multiclass",
        classes=classes,
        fractions=(0.8, 0.1, 0.1),
    )
    # Bytes are dealt and only then made four times as large.
    parts = dealt(whole, owners, tuple(range(int(owners.max()) + 1)))
    return replace(parts, x=_standardised(parts.x, pixels[: int(arrays["trained"])]))


def _standardised(
    pixels: UInt8[np.ndarray, "rows pixels"], trained: UInt8[np.ndarray, "trained pixels"]
) -> np.ndarray:
    mean, deviation = _moments(trained)
    return ((np.arange(256) - mean) / deviation).astype(np.float32)[pixels]


def _moments(pixels: UInt8[np.ndarray, "rows pixels"]) -> tuple[float, float]:
    """Mean and deviation of all pixels, from how often each byte occurs."""
    # A part at a time, because each is made eight times as large: all at once take seconds.
    parts = (pixels[at : at + PART].ravel() for at in range(0, len(pixels), PART))
    counts = sum((np.bincount(part, minlength=256) for part in parts), np.zeros(256, np.int64))
    values = np.arange(256.0)
    mean = float(counts @ values / counts.sum())
    return mean, math.sqrt(counts @ (values - mean) ** 2 / counts.sum())


def _owners(
    labels: np.ndarray, partition: str, clients: Number, alpha: Number, seed: int
) -> np.ndarray:
    match partition:
        case "dirichlet":
            return dirichlet(labels, clients, alpha, seed, LEAST)
        case "iid":
            return iid(labels, clients, seed)
        case "power-law":
            return power_law(labels, clients, seed=seed, least=LEAST)
        case "shards":
            return shards(labels, clients, seed=seed)
        case _:
            raise ValueError(
                f"partition={partition!r} is none of {', '.join(PARTITIONS)}; choose one"
            )
