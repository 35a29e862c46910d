"""Maps: layers of features over a grid of cells, some of which may be blocked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from convexboost.core.space import Array

#: Distances to a terrain type are cut off here, in cells; a type that does not occur is this far away.
FAR = 16.0
#: Side of the neighbourhoods for roughness and for relative height, in cells.
NEAR, AROUND = 5, 21


@dataclass(frozen=True, eq=False)
class Map:
    """Features of every cell of a grid.  Row 0 is at the top, column 0 on the left."""

    features: Array  #: (height, width, n_features)
    names: tuple[str, ...]
    blocked: NDArray[np.bool_] | None = None  #: (height, width): no path enters these cells
    spacing: tuple[float, float] = (1.0, 1.0)  #: size of a cell down and across

    def __post_init__(self) -> None:
        features = np.asarray(self.features, float)
        if features.ndim != 3 or 0 in features.shape:
            raise ValueError(f"`features` must have shape (height, width, n_features), got {features.shape}")
        if not np.isfinite(features).all():
            row, column, layer = (int(i) for i in np.argwhere(~np.isfinite(features))[0])
            raise ValueError(
                f"`features` must be finite, got {features[row, column, layer]} in cell {(row, column)}"
            )
        if len(self.names) != features.shape[2]:
            raise ValueError(f"`names` must name {features.shape[2]} features, got {self.names!r}")
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "names", tuple(self.names))
        if self.blocked is not None:
            blocked = np.asarray(self.blocked)
            if blocked.shape != self.shape or blocked.dtype != bool:
                raise ValueError(
                    f"`blocked` must be boolean with shape {self.shape}, "
                    f"got {blocked.dtype} with shape {blocked.shape}"
                )
            object.__setattr__(self, "blocked", blocked)

    @property
    def shape(self) -> tuple[int, int]:
        """Return height and width."""
        height, width, _ = self.features.shape
        return height, width

    @property
    def free(self) -> NDArray[np.bool_]:
        """Return where a path may go."""
        return np.ones(self.shape, bool) if self.blocked is None else ~self.blocked

    @property
    def rows(self) -> Array:
        """Return the features as a table with a row per cell, row after row of the map."""
        return self.features.reshape(-1, len(self.names))

    def layer(self, name: str) -> Array:
        """Return one feature, (height, width)."""
        if name not in self.names:
            raise ValueError(f"`name` must be one of {', '.join(self.names)}, got {name!r}")
        return self.features[:, :, self.names.index(name)]

    def grid(self, values: Array) -> Array:
        """Lay out one value per cell; blocked cells cost infinity."""
        return np.where(self.free, np.reshape(values, self.shape), np.inf)

    def region(self, rows: tuple[int, int], cols: tuple[int, int]) -> Map:
        """Cut out the cells with rows[0] ≤ row < rows[1] and cols[0] ≤ column < cols[1]."""
        for parameter, (first, last), size in zip(("rows", "cols"), (rows, cols), self.shape, strict=True):
            if not 0 <= first < last <= size:
                raise ValueError(f"`{parameter}` must be a range within (0, {size}), got {(first, last)}")
        cut = slice(*rows), slice(*cols)
        return Map(
            self.features[cut], self.names, None if self.blocked is None else self.blocked[cut], self.spacing
        )


def terrain_features(elevation: Any, dx: float = 1.0, dy: float = 1.0) -> Map:
    """Describe terrain: slope, aspect, curvature, roughness, relative height, elevation.

    Parameters
    ----------
    elevation : array of shape (height, width)
        Heights.
    dx, dy : float
        Size of a cell across and down, in the unit of the elevation.

    Returns
    -------
    Map
        slope in degrees; "aspect sin" and "aspect cos" of the compass direction that a slope faces (north is
        up), both 0 on flat ground; curvature (the Laplacian, per 100 units; positive in hollows); roughness
        (standard deviation of the elevation in 5 x 5 cells about its plane); relative height above the mean
        of 21 x 21 cells; elevation.

    """
    z = np.asarray(elevation, float)
    if z.ndim != 2 or min(z.shape) < 2:
        raise ValueError(f"`elevation` must be a grid of at least 2 x 2 cells, got shape {z.shape}")
    for parameter, size in (("dx", dx), ("dy", dy)):
        if not 0 < size < np.inf:
            raise ValueError(f"`{parameter}` must be positive, got {size!r}")
    down, across = np.gradient(z, dy, dx)
    steepness = np.hypot(down, across)
    share = np.divide(1.0, steepness, out=np.zeros_like(z), where=steepness > 0)
    curvature = np.gradient(down, dy, axis=0) + np.gradient(across, dx, axis=1)
    height = z - ndimage.uniform_filter(z, AROUND, mode="nearest")
    layers = {
        "slope": np.degrees(np.arctan(steepness)),
        "aspect sin": -across * share,  # east
        "aspect cos": down * share,  # north: rows count downwards
        "curvature": 100.0 * curvature,
        "roughness": _roughness(z, down * dy, across * dx),
        "relative height": height,
        "elevation": z,
    }
    return Map(np.stack(list(layers.values()), axis=2), tuple(layers), spacing=(dy, dx))


def _roughness(z: Array, down: Array, across: Array) -> Array:
    """Return the standard deviation in a square, less what a plane with these slopes per cell has."""
    z = z - z.mean()  # squares of large numbers would cancel
    mean = ndimage.uniform_filter(z, NEAR, mode="nearest")
    variance = ndimage.uniform_filter(z * z, NEAR, mode="nearest") - mean**2
    plane = (NEAR**2 - 1) / 12 * (down**2 + across**2)
    return np.sqrt(np.maximum(variance - plane, 0.0))


def map_from_types(grid: Any, symbols: Any = None, blocked: Any = ()) -> Map:
    """Describe a grid of terrain types: which type a cell is, and how far it is to each other type.

    Parameters
    ----------
    grid : Grid, or array of type numbers of shape (height, width)
        What is where.
    symbols : sequence of str, optional
        The symbol of each type number; by default those of the `Grid`, or the numbers.
    blocked : sequence of str
        Symbols of the types that no path enters.  They have no layer of their own, but a distance.

    Returns
    -------
    Map
        "is s" (0 or 1) for each type s that is not blocked; "to s", the distance in cells to the nearest
        cell of type s, at most 16.

    """
    types = np.asarray(getattr(grid, "values", grid))
    if types.ndim != 2 or types.dtype.kind not in "iu" or types.size == 0 or types.min() < 0:
        raise ValueError(f"`grid` must hold numbers 0, 1, ..., got {types.dtype} with shape {types.shape}")
    symbols = symbols or getattr(grid, "symbols", ()) or tuple(map(str, range(int(types.max()) + 1)))
    if types.max() >= len(symbols):
        raise ValueError(f"`symbols` must name {types.max() + 1} types, got {symbols!r}")
    unknown = [symbol for symbol in blocked if symbol not in symbols]
    if unknown:
        raise ValueError(f"`blocked` must be among {' '.join(symbols)}, got {unknown[0]!r}")
    layers: dict[str, Array] = {}
    for number, symbol in enumerate(symbols):
        here = types == number
        if symbol not in blocked:
            layers[f"is {symbol}"] = here.astype(float)
        # Without a cell of the type the distance would be to nowhere.
        away = ndimage.distance_transform_edt(~here) if here.any() else np.full(types.shape, FAR)
        layers[f"to {symbol}"] = np.minimum(away, FAR)
    walls = np.isin(types, [symbols.index(symbol) for symbol in blocked])
    return Map(np.stack(list(layers.values()), axis=2), tuple(layers), walls if walls.any() else None)
