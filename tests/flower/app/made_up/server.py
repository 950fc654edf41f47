"""One algorithm after the other on the same nodes; the first may die in the middle."""

import os

from flwr.serverapp import ServerApp

import federations
from fairfl.flower import BELIEVE_ALL, FairStrategy

app = ServerApp()


@app.main()
def main(grid, context):
    asked = context.run_config
    for text in str(asked["algorithms"]).split():
        strategy = FairStrategy(
            federations.algorithm(text),
            clients=int(asked["clients"]),
            cohort=int(asked["clients"]),
            evaluate_every=int(asked["rounds"]),
            trust=BELIEVE_ALL,
            out=f"{asked['out']}/{text.replace(':', '-')}",
            resume=bool(asked["resume"]),
        )

        def dies(round, arrays):
            if round and round == asked["dies"]:
                os._exit(9)

        first = federations.arrays()
        rounds, timeout = int(asked["rounds"]), float(asked["timeout"])
        strategy.start(grid, first, rounds, timeout, evaluate_fn=dies)
