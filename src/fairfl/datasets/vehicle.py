"""Vehicle (Duarte and Hu, 2004): which of two kinds of vehicle passes, heard by 23 sensors.

A client is a sensor: 100 features of its acoustic, seismic and infrared signals, standardised
within the client, and a label of -1 or 1. The whole of it is vehicle.mat (Smith et al., 2017), or
the LEAF JSON that the q-FFL paper's code makes of that file; a part of 1,860 samples is LEAF JSON
as well.
"""

import numpy as np

from fairfl.clients.federated import FederatedData, from_arrays, labels_of
from fairfl.clients.leaf import together, users
from fairfl.clients.mat import from_mat
from fairfl.datasets.files import File, Paths
from fairfl.datasets.stored import Arrays

FILES = (
    File(
        "vehicle",
        "vehicle.mat",
        "https://drive.google.com/uc?export=download&id=1x39M3wYLt0VKNS8RSiwohT-VfVoGeKlM",
    ),
)
LEAF = (File("vehicle", "mytrain.json"), File("vehicle", "mytest.json"))
SUBSET = (File("vehicle", "mytrain.ditto_subsampled.json.gz"),)

FEATURES = 100
CLASSES = (-1, 1)


def read(paths: Paths) -> Arrays:
    """vehicle.mat, standardised, or LEAF JSON, which is."""
    if "vehicle.mat" in paths:
        data = from_mat(paths["vehicle.mat"], standardise=True, split=None)
    else:
        data = from_arrays(together([users([path]) for path in paths.values()]), split=None)
    _check(data, " and ".join(str(path) for path in paths.values()))
    return {
        "x": data.x,
        "y": labels_of(data, data.y).astype(np.int8),
        "sizes": data.sizes,
        "ids": np.array(data.ids),
    }


def build(arrays: Arrays, seed: int) -> FederatedData:  # noqa: ARG001  nothing is drawn
    """The rows of every sensor, split 80 / 10 / 10 by the seed of a run."""
    return FederatedData(
        x=arrays["x"],
        y=np.searchsorted(CLASSES, arrays["y"]).astype(np.int32),
        offsets=np.concatenate([[0], np.cumsum(arrays["sizes"])]),
        ids=tuple(arrays["ids"].tolist()),
        task="binary",
        classes=np.array(CLASSES),
        fractions=(0.8, 0.1, 0.1),
    )


def _check(data: FederatedData, place: str) -> None:
    known = data.classes is not None and tuple(data.classes.tolist()) == CLASSES
    if data.x.shape[1:] != (FEATURES,) or not known:
        raise ValueError(
            f"{place!r} is not Vehicle: its rows have the shape {data.x.shape[1:]} and the labels "
            f"{data.classes}, not ({FEATURES},) and -1, 1; put the file of that name there"
        )
