"""The server side: q-FedAvg, kept in a run's folder, so that it can be resumed and reported."""

from flwr.serverapp import ServerApp

import fairfl
from fairfl.flower import FairStrategy, model_arrays
from hospitals.task import model

app = ServerApp()


@app.main()
def main(grid, context):
    asked = context.run_config
    algorithm = fairfl.q_fedavg(
        q=float(asked["q"]),
        learning_rate=float(asked["learning-rate"]),
        batch_size=int(asked["batch-size"]),
    )
    strategy = FairStrategy(
        algorithm,
        clients=int(asked["clients"]),
        cohort=int(asked["cohort"]),
        seed=int(asked["seed"]),
        out=str(asked["out"]),
        resume=bool(asked["resume"]),
        name="hospitals",
    )
    first = model_arrays(model(), int(asked["seed"]))
    strategy.start(grid, first, int(asked["rounds"]), timeout=float(asked["timeout"]))
