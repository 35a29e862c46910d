"""Maps: what the features mean, on terrain that can be worked out by hand."""

import numpy as np
import pytest

from convexboost.planning import Map, map_from_types, terrain_features


def test_a_plane():
    rows, columns = np.indices((40, 50), float)
    # 3 m down per row of 10 m (it faces south), 4 m up per column of 20 m (it faces west).
    map = terrain_features(100.0 - 3.0 * rows + 4.0 * columns, dx=20.0, dy=10.0)
    down, across = -0.3, 0.2
    inside = np.s_[12:-12, 12:-12]
    steep = np.hypot(down, across)
    expected = {
        "slope": np.degrees(np.arctan(steep)),
        "aspect sin": -across / steep,
        "aspect cos": down / steep,
        "curvature": 0.0,
        "roughness": 0.0,
        "relative height": 0.0,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(map.layer(name)[inside], value, atol=1e-5, err_msg=name)
    np.testing.assert_array_equal(map.layer("elevation"), 100.0 - 3.0 * rows + 4.0 * columns)
    assert map.spacing == (10.0, 20.0)


def test_flat_ground_faces_nowhere():
    map = terrain_features(np.full((5, 6), 7.0))
    for name in set(map.names) - {"elevation"}:
        np.testing.assert_array_equal(map.layer(name), 0.0)


def test_hollows_curve_up_and_lie_low():
    rows, columns = np.indices((41, 41), float) - 20.0
    map = terrain_features(rows**2 + columns**2, dx=2.0, dy=2.0)
    assert map.layer("curvature")[20, 20] == pytest.approx(100.0 * 4.0 / 4.0)  # Laplacian 4 per cell²
    assert map.layer("relative height")[20, 20] < 0.0
    assert terrain_features(-rows * rows).layer("curvature")[20, 20] < 0.0


def test_roughness_is_the_deviation_about_the_plane():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(30, 30))
    tilted = z + 2.0 * np.indices(z.shape)[0]
    flat = np.array([[z[r - 2 : r + 3, c - 2 : c + 3].std() for c in range(2, 28)] for r in range(2, 28)])
    slopes = np.gradient(z)
    expected = np.sqrt(np.maximum(flat**2 - 2.0 * (slopes[0] ** 2 + slopes[1] ** 2)[2:-2, 2:-2], 0.0))
    np.testing.assert_allclose(terrain_features(z).layer("roughness")[2:-2, 2:-2], expected, atol=1e-7)
    # A tilt alone adds little compared with what it would without the plane (2 √2 · 2).
    assert terrain_features(tilted).layer("roughness").mean() < 4.0


def test_types_and_distances():
    grid = np.array([[0, 0, 2], [0, 1, 0]])
    map = map_from_types(grid, symbols=".@W~", blocked="@")
    assert map.names == ("is .", "to .", "to @", "is W", "to W", "is ~", "to ~")
    np.testing.assert_array_equal(map.blocked, grid == 1)
    np.testing.assert_array_equal(map.layer("is W"), grid == 2)
    np.testing.assert_allclose(map.layer("to W"), [[2.0, 1.0, 0.0], [5**0.5, 2**0.5, 1.0]])
    np.testing.assert_array_equal(map.layer("to ~"), 16.0)  # nowhere
    assert np.isinf(map.grid(np.zeros(6))[1, 1])


def test_regions():
    rng = np.random.default_rng(0)
    map = Map(rng.normal(size=(6, 7, 2)), ("a", "b"), rng.random((6, 7)) < 0.3, (2.0, 3.0))
    part = map.region((1, 4), (2, 7))
    assert part.shape == (3, 5)
    assert part.spacing == map.spacing
    np.testing.assert_array_equal(part.features, map.features[1:4, 2:7])
    np.testing.assert_array_equal(part.blocked, map.blocked[1:4, 2:7])
    np.testing.assert_array_equal(part.grid(part.rows[:, 0])[part.free], part.layer("a")[part.free])


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Map(np.zeros((2, 2)), ("a",)), "`features` must have shape"),
        (lambda: Map(np.full((2, 2, 1), np.nan), ("a",)), r"got nan in cell \(0, 0\)"),
        (lambda: Map(np.zeros((2, 2, 1)), ("a", "b")), "`names` must name 1 features"),
        (lambda: Map(np.zeros((2, 2, 1)), ("a",), np.zeros((2, 2))), "`blocked` must be boolean"),
        (lambda: Map(np.zeros((2, 2, 1)), ("a",)).region((0, 3), (0, 2)), r"`rows` must be a range"),
        (lambda: Map(np.zeros((2, 2, 1)), ("a",)).region((0, 2), (1, 1)), r"`cols` must be a range"),
        (lambda: Map(np.zeros((2, 2, 1)), ("a",)).layer("b"), "`name` must be one of a, got 'b'"),
        (lambda: terrain_features(np.zeros(3)), "`elevation` must be a grid"),
        (lambda: terrain_features(np.zeros((3, 3)), dy=0.0), "`dy` must be positive"),
        (lambda: map_from_types(np.zeros((2, 2))), "`grid` must hold numbers"),
        (lambda: map_from_types(np.ones((2, 2), int), symbols="."), "`symbols` must name 2 types"),
        (lambda: map_from_types(np.ones((2, 2), int), blocked="@"), "`blocked` must be among 0 1, got '@'"),
    ],
)
def test_bad_input(make, match):
    with pytest.raises(ValueError, match=match):
        make()
