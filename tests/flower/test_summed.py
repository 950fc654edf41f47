"""The summed form of q-FedAvg is the plain one, whatever scale is announced."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairfl.algorithms.rules import Cohort, q_ffl
from fairfl.flower.summed import (
    Announced,
    direction,
    next_scale,
    packed,
    summands,
    total,
    unpacked,
)

SHAPES = ((4, 3), (3,))


def drawn(seed, clients=6):
    draw = np.random.default_rng(seed)
    updates = [[draw.normal(size=shape) * 0.1 for shape in SHAPES] for _ in range(clients)]
    return updates, draw.uniform(0.2, 3, clients).tolist(), draw.integers(1, 90, clients).tolist()


def plainly(updates, losses, u, q, L):
    """sum_k a_k D_k with the simulator's rule."""
    squares = [sum(float((leaf**2).sum()) for leaf in update) for update in updates]
    people = Cohort(
        ids=jnp.arange(len(updates)),
        sizes=jnp.ones(len(updates)),
        weights=jnp.asarray(u, float),
        losses=jnp.asarray(losses, float),
        norms=jnp.asarray(squares, float),
    )
    hyper = {"q": jnp.asarray(q, float), "L": jnp.asarray(L, float)}
    a = np.asarray(q_ffl().coefficients(hyper, (), people)[0])
    return [sum(a[k] * updates[k][i] for k in range(len(updates))) for i in range(len(SHAPES))]


@pytest.mark.parametrize("scale", [0.5, 3.0, 20.0])
@pytest.mark.parametrize("q", [0.0, 0.1, 1.0, 5.0])
def test_the_summed_form_equals_the_plain_one(q, scale):
    updates, losses, rows = drawn(1)
    announced = Announced(q=q, L=10.0, scale=scale, most=1e9)
    parts = [summands(*one, announced) for one in zip(updates, losses, rows, strict=True)]
    for mine, theirs in zip(
        direction(total(parts)), plainly(updates, losses, np.ones(6), q, 10.0), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-7)


def test_rows_weigh_where_the_sampler_does_not():
    updates, losses, rows = drawn(2)
    announced = Announced(q=1.0, L=10.0, scale=1.0, rows=50.0, most=1e9)
    parts = [summands(*one, announced) for one in zip(updates, losses, rows, strict=True)]
    for mine, theirs in zip(
        direction(total(parts)), plainly(updates, losses, rows, 1.0, 10.0), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-7)


@settings(max_examples=50, deadline=None)
@given(
    loss=st.floats(0, 1e30), q=st.floats(0, 100), scale=st.floats(1e-6, 1e6), rows=st.integers(1, 9)
)
def test_no_client_sends_more_than_was_announced(loss, q, scale, rows):
    announced = Announced(q=q, L=10.0, scale=scale, rows=3.0)
    part = summands([np.ones(4)], loss, rows, announced)
    assert 0 <= part.weight <= announced.most
    assert 0 <= part.share <= announced.most_share * (1 + 1e-12)
    assert np.isfinite(part.update[0]).all()


def test_a_client_at_zero_loss_sends_nothing_and_stalls_nobody():
    announced = Announced(q=0.5, L=10.0, scale=1.0)
    solved = summands([np.full(4, 0.1)], 0.0, 1, announced)
    other = summands([np.full(4, 0.1)], 1.0, 1, announced)
    assert solved.share == 0
    np.testing.assert_allclose(direction(total([solved, other])), direction(other))


def test_the_announced_scale_follows_the_worst_loss_as_q_grows():
    updates, losses, rows = drawn(3)

    def after(q):
        announced = Announced(q=q, L=10.0, scale=3.0, most=1e30)
        parts = [summands(*one, announced) for one in zip(updates, losses, rows, strict=True)]
        return next_scale(total(parts), 1.0)

    np.testing.assert_allclose(after(0.0), np.mean(losses))
    assert np.mean(losses) < after(2.0) < after(30.0) <= max(losses) * (1 + 1e-9)
    np.testing.assert_allclose(after(200.0), max(losses), rtol=1e-3)


def test_a_mean_of_packed_vectors_is_enough():
    updates, losses, rows = drawn(4)
    announced = Announced(q=1.0, L=10.0, scale=2.0)
    parts = [summands(*one, announced) for one in zip(updates, losses, rows, strict=True)]
    mean = np.mean([packed(part, announced) for part in parts], axis=0)
    got = direction(unpacked(mean, updates[0], announced))
    for mine, theirs in zip(got, direction(total(parts)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-7)


def test_a_sum_of_another_model_is_refused():
    announced = Announced(q=1.0, L=10.0, scale=2.0)
    with pytest.raises(ValueError, match="the model needs 18"):
        unpacked(np.zeros(9), [np.zeros(s) for s in SHAPES], announced)
    with pytest.raises(ValueError, match="smaller loss scale"):
        direction(total([summands([np.ones(2)], 0.0, 1, announced)]))
    with pytest.raises(ValueError, match="a client's loss is nan"):
        summands([np.ones(2)], float("nan"), 1, announced)
