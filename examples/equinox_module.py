"""An Equinox module, trained so that it serves every client, and put together again afterwards.

Needs Equinox: pip install 'fairfl[equinox]'
"""

import equinox as eqx
import jax
import numpy as np

import fairfl


class Net(eqx.Module):
    """One row in, the scores of its classes out; the key is for dropout, while a client trains."""

    first: eqx.nn.Linear
    dropout: eqx.nn.Dropout
    last: eqx.nn.Linear

    def __init__(self, key):
        keys = jax.random.split(key)
        self.first = eqx.nn.Linear(60, 32, key=keys[0])
        self.dropout = eqx.nn.Dropout(0.1)
        self.last = eqx.nn.Linear(32, 10, key=keys[1])

    def __call__(self, x, *, key=None):
        return self.last(self.dropout(jax.nn.relu(self.first(x)), key=key))


def main() -> None:
    """Train a fair model on made-up clients, and call the trained module on one row."""
    data = fairfl.datasets.load("synthetic", clients=30)
    model = fairfl.models.from_equinox(Net, data)
    result = fairfl.train(data, model, fairfl.q_fedavg(q=1, learning_rate=0.1), rounds=200)
    params = jax.tree.map(lambda leaf: leaf[0], result.params)
    trained = eqx.nn.inference_mode(eqx.combine(params, Net(jax.random.key(0))))
    print(f"average {result.fairness('test')['average'][0]:.1f} %")
    print("the first row is of class", int(np.argmax(trained(data.x[0]))))


if __name__ == "__main__":
    main()
