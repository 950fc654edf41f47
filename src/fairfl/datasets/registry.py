"""The data sets that can be loaded by name: what each is, where it comes from, how it is loaded.

A data set is one value of `DataSet` in the list below; how its rows are made or read is the job of
a file of its own.
"""

import dataclasses
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from fairfl.clients.federated import FederatedData
from fairfl.datasets import (
    adult,
    fashion_mnist,
    idx,
    mnist,
    omniglot,
    sent140,
    shakespeare,
    vehicle,
)
from fairfl.datasets.downloads import download
from fairfl.datasets.files import File, Paths, found, in_the_way, missing
from fairfl.datasets.places import data_folder, folders
from fairfl.datasets.statistics import Statistics, statistics
from fairfl.datasets.stored import Arrays, stored
from fairfl.datasets.synthetic import synthetic, synthetic_hybrid, synthetic_iid


@dataclass(frozen=True)
class DataSet:
    """One entry: `load(seed, folder, **options)` makes the data, `present(folder)` says whether it
    could without a download, `counted(folder)` says what is there, and `options` names the keywords
    that `load` takes. `files` are its files, or else those `instead`."""

    name: str
    title: str
    source: str
    licence: str
    load: Callable[..., FederatedData]
    options: tuple[str, ...]
    present: Callable[[Path], bool]
    counted: Callable[[Path], "Counted"]
    files: tuple[File, ...] = ()
    instead: tuple[File, ...] = ()


Whole = dict[str, int | float]
Counted = tuple[Statistics, Whole]
"""The statistics of what `load` gives, and what the files hold as a whole."""


@dataclass(frozen=True)
class Description:
    """What there is to know about a data set; its counts are None while it is not present.

    Mean and deviation are those of the clients' rows, as in the paper's table. `files` are in the
    data folder, or else those `instead`; `holds` says what they have as a whole.

    >>> from fairfl.datasets import describe
    >>> found = describe(data_dir="an empty folder")[0]
    >>> found.name, found.clients, found.rows, round(found.mean), round(found.deviation)
    ('synthetic', 100, 12697, 127, 73)
    """

    name: str
    title: str
    clients: int | None
    rows: int | None
    mean: float | None
    deviation: float | None
    smallest: int | None
    largest: int | None
    labels: dict[str, int] | None
    splits: dict[str, int] | None
    holds: Whole | None
    source: str
    licence: str
    present: bool
    options: tuple[str, ...]
    files: tuple[File, ...]
    instead: tuple[File, ...]


def generated(
    name: str, title: str, generate: Callable[..., FederatedData], options: tuple[str, ...]
) -> DataSet:
    """A data set that is made from a seed: it has no files, so it is always present.

    >>> from fairfl.datasets.registry import generated
    >>> from fairfl.datasets.synthetic import synthetic_iid
    >>> generated("mine", "my own", synthetic_iid, ("clients",)).options
    ('clients',)
    """
    return DataSet(
        name=name,
        title=title,
        source="generated as in the q-FFL paper (Li et al., ICLR 2020), Datasets and Models",
        licence="none needed (generated)",
        load=lambda seed, _, **options: generate(seed, **options),
        options=options,
        present=lambda _: True,
        counted=lambda _: (statistics(generate(0)), {}),
    )


def published(
    name: str,
    title: str,
    source: str,
    licence: str,
    files: tuple[File, ...],
    read: Callable[[Paths], Arrays],
    build: Callable[..., FederatedData],
    options: tuple[str, ...] = (),
    kept_as: str | None = None,
    instead: tuple[File, ...] = (),
    whole: Callable[[Arrays], Whole] | None = None,
) -> DataSet:
    """A data set of published files: what `read` makes of them is kept, `build` makes the data.

    Data sets of the same files and the same `read` share what is kept, under the name `kept_as`.
    Where the `files` are not all there but those `instead` are, these are read.

    >>> from fairfl.datasets import mnist
    >>> from fairfl.datasets.registry import published
    >>> published("mine", "", "", "", mnist.FILES, len, mnist.build).present(Path("nowhere"))
    False
    """

    def paths(folder: Path) -> Paths:
        return _paths(name, _chosen(files, instead, folder), folder)

    def arrays(folder: Path) -> Arrays:
        return stored(kept_as or name, paths(folder), read)

    def load(seed: int, folder: Path, **options: Any) -> FederatedData:
        return build(arrays(folder), seed, **options)

    def count(folder: Path) -> Arrays:
        """As text, because what is stored are arrays."""
        found = arrays(folder)
        counts = dataclasses.asdict(statistics(build(found, 0)))
        return {"counts": np.array(json.dumps([counts, whole(found) if whole else {}]))}

    def counted(folder: Path) -> Counted:
        kept = stored(f"{name}-counts", paths(folder), lambda _: count(folder))
        counts, holds = json.loads(str(kept["counts"]))
        return Statistics(**counts), holds

    return DataSet(
        name=name,
        title=title,
        source=source,
        licence=licence,
        load=load,
        options=options,
        present=lambda folder: not missing(_chosen(files, instead, folder), folder),
        counted=counted,
        files=files,
        instead=instead,
    )


def _chosen(files: tuple[File, ...], instead: tuple[File, ...], folder: Path) -> tuple[File, ...]:
    others = instead and missing(files, folder) and not missing(instead, folder)
    return instead if others else files


def _paths(name: str, files: tuple[File, ...], folder: Path) -> Paths:
    return {file.name: found(file, folder) or _fetched(name, file, folder) for file in files}


def _fetched(name: str, file: File, folder: Path) -> Path:
    if place := in_the_way(file, folder):
        raise ValueError(
            f"{str(place)!r} is a folder, but the data set {name!r} needs a file there; move the "
            "folder away, or put the file that is in it in its place"
        )
    if file.url is None or os.environ.get("FAIRFL_OFFLINE") == "1":
        source = f"from {file.url}" if file.url else "(it has no public address)"
        raise ValueError(
            f"the data set {name!r} needs {file.place}, which is not in the data folder "
            f"{str(folder)!r}; put it there {source}, or name the folder that has it with "
            "--data-dir or FAIRFL_DATA"
        )
    return download(file, folders(folder)[-1])


_VEHICLE = (
    "Vehicle (Duarte and Hu, 2004), as in federated multi-task learning (Smith et al., 2017), "
    "http://www.ecs.umass.edu/~mduarte/Software.html"
)
_FASHION_MNIST = (
    "Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017), "
    "https://github.com/zalandoresearch/fashion-mnist"
)
_SENT140 = (
    "Sentiment140 (Go, Bhayani and Huang, 2009), http://help.sentiment140.com/for-students, with "
    "GloVe (Pennington, Socher and Manning, 2014), https://nlp.stanford.edu/projects/glove"
)
_TWEETS = "research use, no redistribution (GloVe: PDDL 1.0)"
_PARTITION = ("partition", "clients", "alpha")

_DATASETS = (
    generated(
        "synthetic",
        "Synthetic(alpha, beta): 10 classes, a labelling rule and a mean of its own per client",
        synthetic,
        ("alpha", "beta", "clients", "sizes"),
    ),
    generated(
        "synthetic-iid",
        "Synthetic-IID: 10 classes, one labelling rule and one distribution for all clients",
        synthetic_iid,
        ("clients", "sizes"),
    ),
    generated(
        "synthetic-hybrid",
        "Synthetic-Hybrid: half of the clients IID, half as in Synthetic(1, 1)",
        synthetic_hybrid,
        ("clients", "sizes"),
    ),
    published(
        "vehicle",
        "Vehicle: 23 sensors tell two kinds of vehicle apart, 100 features each",
        _VEHICLE,
        "research use",
        vehicle.FILES,
        vehicle.read,
        vehicle.build,
        instead=vehicle.LEAF,
    ),
    published(
        "vehicle-subset",
        "Vehicle, a subset: 1,860 of its 43,695 samples, other sizes than the paper's",
        _VEHICLE,
        "research use",
        vehicle.SUBSET,
        vehicle.read,
        vehicle.build,
    ),
    published(
        "adult",
        "Adult: income above 50,000 dollars; clients PhD and non-PhD, 99 categories",
        "UCI Machine Learning Repository, Adult (Becker and Kohavi, 1996), "
        "https://archive.ics.uci.edu/dataset/2/adult",
        "CC BY 4.0",
        adult.FILES,
        adult.read,
        adult.build,
    ),
    published(
        "fashion-mnist-afl",
        "Fashion-MNIST as AFL has it: clients T-shirt, Pullover and Shirt, a class each",
        _FASHION_MNIST,
        "MIT",
        fashion_mnist.FILES,
        idx.read,
        fashion_mnist.build_afl,
        whole=idx.whole,
        kept_as="fashion-mnist",
    ),
    published(
        "fashion-mnist",
        "Fashion-MNIST: clothes of 10 classes, dealt to clients (label skew by default)",
        _FASHION_MNIST,
        "MIT",
        fashion_mnist.FILES,
        idx.read,
        fashion_mnist.build,
        _PARTITION,
        whole=idx.whole,
    ),
    published(
        "mnist",
        "MNIST: handwritten digits, dealt to clients (label skew by default)",
        "MNIST (LeCun, Cortes and Burges, 1998), https://ossci-datasets.s3.amazonaws.com/mnist",
        "CC BY-SA 3.0",
        mnist.FILES,
        idx.read,
        mnist.build,
        _PARTITION,
        whole=idx.whole,
    ),
    published(
        "omniglot",
        "Omniglot: five-way tasks for meta-learning, 300 to train on and 100 held out",
        "Omniglot (Lake, Salakhutdinov and Tenenbaum, 2015), "
        "https://github.com/brendenlake/omniglot",
        "MIT",
        omniglot.FILES,
        omniglot.read,
        omniglot.build,
        whole=omniglot.whole,
    ),
    published(
        "shakespeare",
        "Shakespeare: the next character; 31 roles drawn to the paper's mean and deviation",
        "Complete Works of William Shakespeare, Project Gutenberg eBook 100 (World Library), by "
        "the rules of LEAF (Caldas et al., 2018), https://www.gutenberg.org/ebooks/100",
        "World Library's text: personal use, no redistribution, not commercial",
        shakespeare.FILES,
        shakespeare.read,
        shakespeare.build,
        ("clients", "least", "most"),
        whole=shakespeare.whole,
    ),
    published(
        "sent140",
        "Sent140: happy or sad tweets; 1,101 accounts drawn to the paper's mean and deviation",
        _SENT140,
        _TWEETS,
        sent140.FILES,
        sent140.read,
        sent140.build,
        ("clients", "least"),
        whole=sent140.whole,
        instead=sent140.LEAF,
    ),
    published(
        "sent140-subset",
        "Sent140, a subset: 37,582 of its 1,600,000 tweets, accounts unlike the paper's",
        _SENT140,
        _TWEETS,
        sent140.SUBSET,
        sent140.read,
        sent140.build_subset,
        ("least",),
        whole=sent140.whole,
        instead=sent140.LEAF_SUBSET,
    ),
)
_BY_NAME = {dataset.name: dataset for dataset in _DATASETS}


def names() -> tuple[str, ...]:
    """The names that `load` knows.

    >>> from fairfl.datasets import names
    >>> names()[:2]
    ('synthetic', 'synthetic-iid')
    """
    return tuple(_BY_NAME)


def present(name: str, data_dir: Path | str | None = None) -> bool:
    """Whether there is a data set of that name and it could be loaded without a download.

    >>> from fairfl.datasets import present
    >>> present("synthetic"), present("adult", data_dir="an empty folder"), present("vehicles")
    (True, False, False)
    """
    return name in _BY_NAME and _BY_NAME[name].present(data_folder(data_dir))


def load(
    name: str, seed: int = 0, data_dir: Path | str | None = None, **options: Any
) -> FederatedData:
    """The data set of that name; `seed` seeds only what is generated or dealt to clients.

    `data_dir` holds the files; where it is None, the folder FAIRFL_DATA or the user's cache does.

    >>> from fairfl.datasets import load
    >>> data = load("synthetic", seed=0, alpha=1.0, beta=1.0, clients=100)
    >>> data.name, data.clients, len(data.y), data.ids[0]
    ('synthetic', 100, 12697, 'f_00000')
    """
    dataset = _dataset(name)
    _check_options(dataset, options)
    _check_seed(seed)
    return dataset.load(seed, data_folder(data_dir), **options).renamed(name)


def describe(data_dir: Path | str | None = None) -> list[Description]:
    """All data sets, with counts taken from the data themselves as `load` gives them.

    >>> from fairfl.datasets import describe
    >>> [d.name for d in describe(data_dir="an empty folder") if d.present]
    ['synthetic', 'synthetic-iid', 'synthetic-hybrid']
    """
    return [_description(dataset, data_folder(data_dir)) for dataset in _DATASETS]


def _description(dataset: DataSet, folder: Path) -> Description:
    counts: dict[str, Any] = dict.fromkeys(field.name for field in dataclasses.fields(Statistics))
    holds, present = None, dataset.present(folder)
    if present:
        found, holds = dataset.counted(folder)
        counts = dataclasses.asdict(found)
    return Description(
        name=dataset.name,
        title=dataset.title,
        **counts,
        holds=holds,
        source=dataset.source,
        licence=dataset.licence,
        present=present,
        options=dataset.options,
        files=dataset.files,
        instead=dataset.instead,
    )


def _dataset(name: str) -> DataSet:
    if name in _BY_NAME:
        return _BY_NAME[name]
    near = get_close_matches(name.lower().replace("_", "-"), _BY_NAME)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise ValueError(
        f"there is no data set {name!r}; {hint}the known ones are {', '.join(_BY_NAME)}"
    )


def _check_options(dataset: DataSet, options: dict[str, Any]) -> None:
    for option in options:
        if option not in dataset.options:
            raise ValueError(
                f"the data set {dataset.name!r} has no option {option!r}; "
                f"the options it has are {', '.join(dataset.options) or 'none'}"
            )


def _check_seed(seed: object) -> None:
    if not isinstance(seed, Integral) or not 0 <= int(seed) < 2**64:
        raise ValueError(f"seed={seed!r} must be a whole number from 0 to 2^64 - 1")
