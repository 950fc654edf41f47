"""Flower's wrappers for central differential privacy, around the strategy."""

import numpy as np
import pytest
from flwr.app import Error
from flwr.clientapp.mod import fixedclipping_mod
from flwr.serverapp.strategy import (
    DifferentialPrivacyClientSideFixedClipping,
    DifferentialPrivacyServerSideAdaptiveClipping,
    DifferentialPrivacyServerSideFixedClipping,
)

import fairfl
import federations
from fairfl.flower import BELIEVE_ALL, FairStrategy, fair_client

EQUAL = fairfl.fedavg(sampler="everyone", weights="equal", **federations.FULL)


@pytest.fixture(autouse=True)
def identity():
    federations.identify()


def trained(privacy=None, grid=None, rounds=2):
    strategy = FairStrategy(EQUAL, clients=6, trust=BELIEVE_ALL, privacy=privacy)
    grid = grid or federations.Nodes(federations.apps())
    strategy.start(grid, federations.arrays(), rounds, 60)
    return strategy


def weights(strategy):
    return np.concatenate([leaf.ravel() for leaf in strategy.result.members[0].params.values()])


def test_a_wrapper_that_neither_clips_nor_adds_noise_changes_nothing():
    wrapped = trained(lambda s: DifferentialPrivacyServerSideFixedClipping(s, 0.0, 1e6, 6))
    np.testing.assert_allclose(weights(wrapped), weights(trained()), atol=1e-6)


def test_updates_are_clipped_before_they_are_summed():
    wrapped = trained(
        lambda s: DifferentialPrivacyServerSideFixedClipping(s, 0.0, 1e-3, 6), rounds=1
    )
    assert 0 < np.linalg.norm(weights(wrapped)) <= 1e-3 * (1 + 1e-6)


def test_noise_is_added_to_the_model_that_the_next_round_begins_with():
    np.random.seed(0)
    wrapped = trained(lambda s: DifferentialPrivacyServerSideFixedClipping(s, 6.0, 1.0, 6))
    change = weights(wrapped) - weights(trained())
    assert 0.5 < change.std() < 3


def test_clipping_may_be_the_clients_own():
    apps = {
        k + 1: fair_client(lambda _, k=k: federations.site(k), mods=[fixedclipping_mod])
        for k in range(6)
    }
    wrapped = trained(
        lambda s: DifferentialPrivacyClientSideFixedClipping(s, 0.0, 1e-3, 6),
        federations.Nodes(apps),
        rounds=1,
    )
    assert 0 < np.linalg.norm(weights(wrapped)) <= 1e-3 * (1 + 1e-6)


def test_adaptive_clipping_composes_too():
    wrapped = trained(lambda s: DifferentialPrivacyServerSideAdaptiveClipping(s, 0.1, 6))
    assert np.isfinite(weights(wrapped)).all()


def test_one_lost_client_does_not_cost_the_round():
    """The wrapper alone would leave out a round with any error in it."""
    grid = federations.Nodes(federations.apps())
    grid.faults[2, "train"] = lambda reply: Error(5, "gone")
    wrapped = trained(
        lambda s: DifferentialPrivacyServerSideFixedClipping(s, 0.0, 1e6, 6), grid, rounds=1
    )
    assert wrapped.result.history["absent"].tolist() == [1]
    assert np.abs(weights(wrapped)).max() > 0
