"""Rows given for validation protect every learner; neither their order nor copies of them matter."""

import numpy as np
import pytest

from convexboost import ConvexBoostRegressor
from tests.contracts.conftest import LEARNERS, learner

N = 50
RNG = np.random.default_rng(3)
X, NEW = RNG.normal(size=(N, 3)), RNG.normal(size=(N, 3))
Y, Y_NEW = (np.column_stack([A[:, 0], A[:, 1]]) + 2.0 * RNG.normal(size=(N, 2)) for A in (X, NEW))
COUNT = RNG.integers(1, 4, N)


def fit(name, X_val=NEW, y_val=Y_NEW, **given):
    model = ConvexBoostRegressor(
        learner=learner(name),
        n_rounds=40,
        n_iter_no_change=4,
        scoring=given.pop("scoring", "loss"),
        random_state=0,
    )
    return model.fit(X, Y, X_val=X_val, y_val=y_val, **given)


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_stops_by_the_rows_given(name):
    model = fit(name)
    curve = model.history_["validation"]
    assert model.best_round_ == np.argmin(curve)
    assert model.n_rounds_ == min(np.argmin(curve[1:]) + 5, 40)  # patience counts rounds, not the start
    assert curve[model.best_round_] == pytest.approx(np.sum((model.predict(NEW) - Y_NEW) ** 2) / (2 * N))


@pytest.mark.parametrize("scoring", ["loss", "neg_mean_absolute_error"])
@pytest.mark.parametrize("name", LEARNERS)
def test_neither_order_nor_copies_matter(name, scoring):
    order = np.random.default_rng(0).permutation(N)
    plain, mixed = fit(name, scoring=scoring), fit(name, NEW[order], Y_NEW[order], scoring=scoring)
    assert mixed.best_round_ == plain.best_round_
    np.testing.assert_array_equal(mixed.history_["validation"], plain.history_["validation"])
    copies = np.repeat(np.arange(N), COUNT)
    weighted = fit(name, sample_weight_val=COUNT.astype(float), scoring=scoring)
    copied = fit(name, NEW[copies], Y_NEW[copies], scoring=scoring)
    assert weighted.best_round_ == copied.best_round_
    np.testing.assert_array_equal(weighted.history_["validation"], copied.history_["validation"])
