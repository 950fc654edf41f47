"""What the server tells a client of a round: the numbers of the algorithm, and whose turn it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flwr.app import ConfigRecord

from fairfl.algorithms import Algorithm
from fairfl.algorithms.algorithm import with_lipschitz

WORKS = ("local SGD", "proximal SGD", "full gradient")
"""The kinds of work that a client can be told of."""


@dataclass(frozen=True)
class Orders:
    """How a client trains in a round.

    One full gradient is one step with all rows and the rate 1 / L, so a client that obeys
    `learning_rate`, `epochs` and `batch_size` (None for all rows) does every kind of work but the
    proximal one, which adds mu (w_k - w) to its gradients. `seed` and `client` name the client's
    shuffles; `hyper` are all numbers of the algorithm.

    >>> from fairfl.flower import Orders
    >>> Orders(round=1, learning_rate=0.1).batch_size is None
    True
    """

    round: int
    learning_rate: float
    epochs: int = 1
    batch_size: int | None = None
    mu: float = 0.0
    client: int = 0
    seed: int = 0
    hyper: Mapping[str, float] = field(default_factory=dict)


def check_work(algorithm: Algorithm) -> None:
    """Refuse what no message can ask of a client."""
    if len(algorithm.experiments) != 1:
        raise ValueError(
            f"{algorithm.name} lists {len(algorithm.experiments)} experiments but a federation "
            "trains one; give every hyper-parameter one value"
        )
    if algorithm.work.name not in WORKS:
        raise ValueError(
            f"{algorithm.name} has the work {algorithm.work.name!r}, which a Flower client cannot "
            f"be told; choose an algorithm with {', '.join(WORKS)}"
        )


def orders_of(algorithm: Algorithm, round: int, seed: int) -> dict[str, Any]:
    """The configuration of a round (from 1) that every client of the cohort is sent."""
    hyper, work = with_lipschitz(algorithm.experiments[0]), algorithm.work
    full = work.batch_size is None
    return {
        "server-round": round,
        "learning-rate": 1 / hyper["L"] if full else hyper["learning_rate"],
        "epochs": work.epochs,
        "batch-size": work.batch_size or 0,
        "mu": hyper.get("mu", 0.0),
        "seed": str(seed),
        "names": list(hyper),
        "values": list(hyper.values()),
    }


def read(config: ConfigRecord) -> Orders:
    """Back from `orders_of`, and from a plain Flower strategy's train_config.

    >>> from flwr.app import ConfigRecord
    >>> from fairfl.flower.orders import read
    >>> read(ConfigRecord({"server-round": 3, "learning-rate": 0.5})).learning_rate
    0.5
    """
    found: Any = dict(config)
    if "learning-rate" not in found:
        raise ValueError(
            "the server names no learning rate; use FairStrategy, or give the strategy's start "
            "train_config=ConfigRecord({'learning-rate': ...})"
        )
    return Orders(
        round=int(found.get("server-round", 1)),
        learning_rate=float(found["learning-rate"]),
        epochs=int(found.get("epochs", 1)),
        batch_size=int(found.get("batch-size", 0)) or None,
        mu=float(found.get("mu", 0.0)),
        client=int(found.get("client", 0)),
        seed=int(found.get("seed", "0")),
        hyper=dict(zip(found.get("names", []), found.get("values", []), strict=True)),
    )
