"""A deployment on this machine: certificates, keys, a SuperLink, ten SuperNodes, and a run.

    python deploy.py [--data FOLDER] [--out FOLDER] [--q 1] [--rounds 10]

FOLDER of the data holds adult/adult.data and adult/adult.test (else $FAIRFL_DATA is asked). Every
connection is loopback. It ends with how evenly the model serves the ten sites.
"""

import argparse
import os
import tempfile
from pathlib import Path

import fairfl
from fairfl.flower.loopback import Loopback

APP = Path(__file__).parent
SITES = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("FAIRFL_DATA"))
    parser.add_argument("--out", default="runs/hospitals")
    parser.add_argument("--q", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--resume", action="store_true")
    asked = parser.parse_args()
    out = Path(asked.out).resolve()
    own = {"FAIRFL_DATA": str(Path(asked.data).resolve())} if asked.data else {}
    with (
        tempfile.TemporaryDirectory(prefix="hospitals-") as folder,
        Loopback(Path(folder), secure=True, environment=own) as deployment,
    ):
        print(f"SuperLink on {deployment.address} with TLS; its files are in {folder}")
        for site in range(SITES):
            deployment.start_node(site)
        print(f"{SITES} SuperNodes with registered keys; the run begins")
        config = {"q": asked.q, "rounds": asked.rounds, "resume": asked.resume, "out": str(out)}
        run = deployment.run(APP, **config)
        status = deployment.finished(run, seconds=60 * asked.rounds + 300)
        if status != "finished:completed":
            raise SystemExit(f"the run is {status}:\n{deployment.log(run)[-3000:]}")
    report(out)


def report(folder: Path) -> None:
    result = fairfl.load_run(folder)
    served, clients = result.fairness("test"), result.clients("test")
    print(f"\n{'site':<10}{'people':>8}{'accuracy %':>12}{'loss':>8}")
    rows = (clients[name] for name in ("client", "size", "accuracy", "loss"))
    for client, size, accuracy, loss in zip(*rows, strict=True):
        print(f"{client:<10}{size:>8}{accuracy:>12.1f}{loss:>8.3f}")
    print(f"\naverage {served['average'][0]:.1f} %, worst 10 % {served['worst10'][0]:.1f} %, "
          f"variance {served['variance'][0]:.1f}")  # fmt: skip
    print(*(f"Note: {note}" for note in result.notes), sep="\n")
    print(f"Written to {folder}; fairfl report {folder} draws it")


if __name__ == "__main__":
    main()
