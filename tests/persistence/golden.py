"""Write the model file that tests keep of this version of the format: `python -m tests.persistence.golden`.

Run it once for every new version, and keep the files of the old ones.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from convexboost import ConvexBoostClassifier
from convexboost.learners import Tree
from convexboost.persistence import VERSION

DATA = Path(__file__).parents[1] / "data"


def inputs() -> pd.DataFrame:
    """Numbers, missing values, categories and dates; the same in every release of NumPy."""
    i = np.arange(120)
    return pd.DataFrame(
        {
            "number": np.where(i % 7 == 0, np.nan, (i * 37 % 101) / 10.0),
            "city": pd.Categorical(np.array(["Zürich", "Genève", "Basel", "Bern"])[i * 13 % 4]),
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(i * 29 % 50, unit="D"),
        }
    )


def main() -> None:
    """Fit a small model of three classes, and write it with its probabilities."""
    X = inputs()
    y = np.array(["low", "medium", "high"])[np.arange(120) * 37 % 101 // 34]
    model = ConvexBoostClassifier(
        learner=Tree(max_leaves=4), n_rounds=6, random_state=0, early_stopping=False
    )
    model.fit(X, y)
    path = DATA / f"model_v{VERSION}.cbm"
    model.save(path)
    expected = {"classes": model.classes_.tolist(), "probabilities": model.predict_proba(X).tolist()}
    path.with_suffix(".json").write_text(json.dumps(expected) + "\n")
    print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
