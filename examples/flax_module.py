"""A Flax module, trained so that it serves every client: linen here, nnx in docs/models.md.

Needs Flax: pip install 'fairfl[flax]'
"""

import flax.linen as nn

import fairfl


class Net(nn.Module):
    """Two layers with dropout between them, which rests when the model is evaluated."""

    classes: int

    @nn.compact
    def __call__(self, x, train: bool):
        x = nn.relu(nn.Dense(32)(x))
        x = nn.Dropout(0.1, deterministic=not train)(x)
        return nn.Dense(self.classes)(x)


def main() -> None:
    """Train plain and fair on made-up clients, and say how evenly each serves them."""
    data = fairfl.datasets.load("synthetic", clients=30)
    model = fairfl.models.from_flax(Net(classes=10), data)
    family = fairfl.q_fedavg(q=[0, 1], learning_rate=0.1)
    result = fairfl.train(data, model, family, rounds=2000)
    found = result.fairness("test")
    for q, average, worst in zip(found["q"], found["average"], found["worst10"], strict=True):
        print(f"q={q:g}: average {average:.1f} %, worst 10 % of the clients {worst:.1f} %")


if __name__ == "__main__":
    main()
