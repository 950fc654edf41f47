"""q-FedAvg under SecAgg+: the server sees sums over the cohort and nothing of a single client.

flwr 1.41 has SecAgg+ in its legacy workflow alone, which hands a strategy the mean of what the
clients sent. `summed` makes that enough. Every client weighs itself, by its own rows, inside the
sum; to Flower each counts one example and reports no metrics.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from flwr.app import Context
from flwr.client import Client, NumPyClient
from flwr.client.mod import secaggplus_mod
from flwr.clientapp import ClientApp
from flwr.common import ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server import LegacyContext, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.server.workflow import DefaultWorkflow, SecAggPlusWorkflow
from flwr.serverapp import Grid
from jaxtyping import Shaped

from fairfl.flower.summed import Announced, direction, next_scale, packed, summands, unpacked

Leaves = Sequence[Shaped[np.ndarray, "..."]]


class Trained(NamedTuple):
    """What a client's own training gives: F_k(w), measured before it; its rows; and w_k."""

    loss: float
    rows: int
    arrays: Leaves


Train = Callable[[list[np.ndarray], Context], Trained]


def secure_client(train: Train) -> ClientApp:
    """A ClientApp whose reply is one masked vector, for any function that trains.

    >>> from fairfl.flower.secagg import Trained, secure_client
    >>> app = secure_client(lambda w, context: Trained(0.5, 10, [leaf * 0.9 for leaf in w]))
    """

    def client(context: Context) -> Client:
        return _Summing(train, context).to_client()

    return ClientApp(client_fn=client, mods=[secaggplus_mod])


class _Summing(NumPyClient):
    """Flower's client around `train`: it answers with its summands alone."""

    def __init__(self, train: Train, context: Context) -> None:
        self.train, self.own = train, context

    def fit(
        self, parameters: list[np.ndarray], config: Mapping[str, Any]
    ) -> tuple[list[np.ndarray], int, dict[str, Any]]:
        announced = Announced(**{name: config[name] for name in Announced._fields})
        trained = self.train(parameters, self.own)
        update = [
            np.subtract(now, own, dtype=np.float64)
            for now, own in zip(parameters, trained.arrays, strict=True)
        ]
        part = summands(update, trained.loss, trained.rows, announced)
        return [packed(part, announced)], 1, {}


class SummedStrategy(FedAvg):
    """q-FedAvg's step from the mean of the clients' packed summands.

    `announced` is what every client of the next round is told; its scale follows the losses. A
    round that SecAgg+ gives up, because too few clients were left, changes neither it nor `w`.
    """

    def __init__(self, w: Leaves, announced: Announced, clients: int) -> None:
        super().__init__(
            fraction_fit=1.0,
            fraction_evaluate=0.0,
            min_fit_clients=clients,
            min_available_clients=clients,
            initial_parameters=ndarrays_to_parameters(list(w)),
            on_fit_config_fn=lambda _: self.announced._asdict(),
        )
        self.w, self.announced, self.rounds = list(w), announced, 0

    def aggregate_fit(self, server_round: int, results: Any, failures: Any) -> Any:
        """Every result holds the same mean; Flower's legacy workflow copies it to each."""
        del server_round, failures
        (mean,) = parameters_to_ndarrays(results[0][1].parameters)
        sums = unpacked(mean, self.w, self.announced)
        step = direction(sums)
        self.w = [
            (leaf - change).astype(leaf.dtype) for leaf, change in zip(self.w, step, strict=True)
        ]
        scale = next_scale(sums, self.announced.scale)
        self.announced = self.announced._replace(scale=scale)
        self.rounds += 1
        return ndarrays_to_parameters(self.w), {"loss-scale": scale, "clients": len(results)}


def train_securely(
    grid: Grid,
    context: Context,
    strategy: SummedStrategy,
    rounds: int,
    num_shares: int,
    reconstruction_threshold: int,
    timeout: float | None = None,
) -> list[np.ndarray]:
    """The model after so many rounds under SecAgg+, for the main function of a ServerApp.

    Vectors are clipped to what a client may send and quantised to 2^22 steps. Fails when a round
    gave no sum, so that Flower reports the run as failed.
    """
    workflow = SecAggPlusWorkflow(
        num_shares=num_shares,
        reconstruction_threshold=reconstruction_threshold,
        max_weight=1.0,
        clipping_range=float(strategy.announced.most),
        timeout=timeout,
    )
    config = ServerConfig(num_rounds=rounds)
    legacy = LegacyContext(context=context, config=config, strategy=strategy)
    DefaultWorkflow(fit_workflow=workflow)(grid, legacy)
    if strategy.rounds < rounds:
        raise RuntimeError(
            f"{rounds - strategy.rounds} of {rounds} rounds gave no sum, because fewer than "
            f"{reconstruction_threshold} clients of a neighbourhood answered; the model has "
            f"{strategy.rounds} rounds. Lower reconstruction_threshold or raise timeout"
        )
    return strategy.w
