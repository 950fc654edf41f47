"""Validation rows for data that have none."""

import numpy as np
import pytest

import fairfl
from conftest import made_up
from fairfl.clients import with_validation


@pytest.fixture
def published():
    rows = made_up([30, 1], split=None)
    parts = {"client-0": (rows.x[:30], rows.y[:30]), "client-1": (rows.x[30:], rows.y[30:])}
    return fairfl.from_arrays(parts, test={"client-0": (rows.x[:4], rows.y[:4])})


def test_a_tenth_of_the_training_rows_of_each_client_and_no_test_row_is_held_out(published):
    before, after = published.split(0), with_validation(published).split(0)
    assert [part.sizes.tolist() for part in after] == [[27, 1], [3, 0], [4, 0], [0, 0]]
    assert after.test.places.tolist() == before.test.places.tolist()
    seen = np.concatenate([after.train.places, after.validation.places])
    assert sorted(seen.tolist()) == sorted(before.train.places.tolist())


def test_every_seed_holds_out_rows_of_its_own(published):
    held_out = with_validation(published)
    first, second = (held_out.split(seed).validation.places for seed in (0, 1))
    assert set(first.tolist()) != set(second.tolist())


def test_data_that_have_validation_rows_stay_as_they_are(data):
    assert with_validation(data) is data


def test_it_is_other_data_to_a_run_that_was_kept(published):
    assert with_validation(published).fingerprint != published.fingerprint


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5])
def test_a_share_that_is_none(published, share):
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        with_validation(published, share)
