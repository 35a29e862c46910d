"""Maximum margin planning: learning what terrain costs from demonstrated paths.

Ratliff, Bagnell and Zinkevich (2006); the imitation learning problem of Grubb and Bagnell (2011).

    from convexboost.planning import MaxMarginPlanner, problem
    data = problem("elevation", quick=True)
    model = MaxMarginPlanner(data.planner, softness=data.softness)
    model.fit(data.train.maps, data.train.demonstrations)
    model.score(data.test.maps, data.test.demonstrations)
"""

from convexboost.planning.demonstrations import agreement, demonstrate, path_loss
from convexboost.planning.drawing import draw_paths
from convexboost.planning.loss import Scene, maximum_margin
from convexboost.planning.maps import Map, map_from_types, terrain_features
from convexboost.planning.max_margin_planner import MaxMarginPlanner
from convexboost.planning.planners import Dijkstra, Horizon, Monotone, Path, Planner
from convexboost.planning.problems import PROBLEMS, Problem, Shown, problem

__all__ = [
    "PROBLEMS",
    "Dijkstra",
    "Horizon",
    "Map",
    "MaxMarginPlanner",
    "Monotone",
    "Path",
    "Planner",
    "Problem",
    "Scene",
    "Shown",
    "agreement",
    "demonstrate",
    "draw_paths",
    "map_from_types",
    "maximum_margin",
    "path_loss",
    "problem",
    "terrain_features",
]
