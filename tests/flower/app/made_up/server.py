"""q-FedAvg on the made-up rows; its process may die in the middle."""

import os

from flwr.serverapp import ServerApp

import fairfl
import federations
from fairfl.flower import BELIEVE_ALL, FairStrategy

app = ServerApp()


@app.main()
def main(grid, context):
    asked = context.run_config
    clients, rounds = int(asked["clients"]), int(asked["rounds"])
    strategy = FairStrategy(
        fairfl.q_fedavg(q=float(asked["q"]), sampler="everyone", **federations.FULL),
        clients=clients,
        cohort=clients,
        evaluate_every=rounds,
        trust=BELIEVE_ALL,
        out=str(asked["out"]),
        resume=bool(asked["resume"]),
    )

    def dies(round, _):
        if round and round == asked["dies"]:
            os._exit(9)

    timeout = float(asked["timeout"])
    strategy.start(grid, federations.arrays(), rounds, timeout, evaluate_fn=dies)
