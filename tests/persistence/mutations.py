"""Damage model files in many ways and load them: `python -m tests.persistence.mutations SEED COUNT FOLDER`.

It runs in a process of its own, where a crash would be seen, and prints what happened as JSON.  Files are
damaged as they are, and also with the checksum repaired, so that the damage reaches the code behind it.  A
file that is repaired may hold another model (a changed leaf is one), but whatever is loaded must predict.
"""

from __future__ import annotations

import json
import resource
import struct
import sys
import time
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from sklearn.base import is_classifier

from convexboost import ModelFormatError, load
from convexboost.persistence import _container

MIB = 2**20
NONSENSE: list[Any] = [
    *(
        None,
        True,
        -1,
        0,
        1,
        2**31,
        2**63,
        10**400,
        1e300,
        "",
        "x",
        "nan",
        [],
        {},
        [[]],
        [None],
        {"is": "dict"},
    ),
    *(
        {"is": "float", "value": "nan"},
        {"is": "array", "array": "text"},
        {"is": "texts", "start": 0, "count": 3},
    ),
    *(
        {"is": "objects", "dtype": "U9999999", "shape": [1], "items": ["a"]},
        {"is": "numbers", "array": "text_ends"},
    ),
    *(
        {"is": "object", "name": "loss.quantile", "fields": {"quantile": 7}},
        {"is": "tuple", "items": [1] * 1000},
    ),
    {"is": "sparse", "format": "csr_array", "shape": [2**60, 2**60], "data": [], "indices": [], "indptr": []},
]


def mutated_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """Change, cut, repeat or move bytes."""
    data, n = bytearray(content), len(content)
    header = 8 + struct.unpack_from("<Q", content)[0]
    where = int(rng.integers(header if rng.random() < 0.5 else n))
    kind = rng.integers(7)
    if kind == 0:
        data[where] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        data[where] = int(rng.integers(256))
    elif kind == 2:
        del data[where:]
    elif kind == 3:
        del data[where : where + int(rng.integers(1, 50))]
    elif kind == 4:
        data[where:where] = rng.bytes(int(rng.integers(1, 50)))
    elif kind == 5:
        struct.pack_into("<Q", data, 0, int(rng.integers(2**63)) >> int(rng.integers(63)))
    else:
        part = data[where : where + 100]
        data[:] = data + part if rng.random() < 0.5 else data[:where] + part + data[where:]
    return bytes(data)


def mutated_array(array: Any, rng: np.random.Generator) -> Any:
    """Change an entry, the length, the type or the shape."""
    kind = rng.integers(5)
    if kind == 0 or array.ndim == 0 or array.size == 0:
        return array.astype(rng.choice(["f8", "i8", "i4", "u1", "f4", "?", "u8"]))
    if kind == 1:
        return array[: rng.integers(len(array))].copy()
    if kind == 2:
        return array.reshape(-1).copy() if array.ndim > 1 else array[None].copy()
    out = array.copy()
    if out.dtype == bool:
        out.flat[rng.integers(out.size)] ^= True
    elif kind == 3:
        out.view(np.uint8).reshape(-1)[rng.integers(out.nbytes)] = rng.integers(256)
    else:
        values = [0, 1, -1, 255, 2**31 - 1, 2**62] + (
            [np.nan, np.inf, -1e308] if out.dtype.kind == "f" else []
        )
        out.flat[rng.integers(out.size)] = np.array(values[rng.integers(len(values))]).astype(out.dtype)
    return out


def mutated_json(value: Any, rng: np.random.Generator) -> Any:
    """Replace, remove or double something inside."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = list(value)[rng.integers(len(value))]
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return value | {key: mutated_json(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        i = int(rng.integers(len(value)))
        return [*value[:i], mutated_json(value[i], rng), *value[i + (rng.random() < 0.8) :]]
    if isinstance(value, int) and rng.random() < 0.5:
        return value + int(rng.integers(-3, 4))
    return NONSENSE[rng.integers(len(NONSENSE))]


def repaired(path: Path, rng: np.random.Generator) -> bytes:
    """Damage the content of a file behind its checksum."""
    description, arrays = _container.read(path)
    for _ in range(int(rng.integers(1, 3))):
        if rng.random() < 0.5:
            name = sorted(arrays)[rng.integers(len(arrays))]
            with np.errstate(all="ignore"):
                arrays[name] = mutated_array(arrays[name], rng)
        else:
            description = mutated_json(description, rng)
    text = json.dumps(description)
    names = {np.dtype(ours): name for name, ours in _container.DTYPES.items()}
    tensors = {name: (names[a.dtype], a.shape, a.tobytes()) for name, a in arrays.items()}
    metadata = {
        "format": _container.MODEL,
        "version": str(_container.VERSION),
        "description": text,
        "checksum": _container.checksum(text, tensors),
    }
    return safetensors.numpy.save(arrays, metadata)


def main(seed: int, count: int, folder: Path) -> dict[str, Any]:
    """Damage the files in a folder so many times; `name.npy` holds the inputs of `name.cbm`."""
    rng = np.random.default_rng(seed)
    files = sorted(folder.glob("*.cbm"))
    inputs = {path: np.load(path.with_suffix(".npy")) for path in files}
    right = {path: load(path).model_.predict(inputs[path]) for path in files}
    damaged = folder / f"damaged_{seed}"
    found: Counter[str] = Counter()
    wrong, slowest, most = [], 0.0, -float("inf")
    tracemalloc.start()
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for case in range(count):
        path = files[case % len(files)]
        repair = rng.random() < 0.5
        content = repaired(path, rng) if repair else mutated_bytes(path.read_bytes(), rng)
        damaged.write_bytes(content)
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        start = time.process_time()
        try:
            model = load(damaged)
            outcome = "loaded"
        except ModelFormatError:
            outcome = "refused"
        except Exception as error:
            outcome = "wrong"
            wrong.append(f"case {case} of {path.name}: load raised {error!r}")
        slowest = max(slowest, time.process_time() - start)
        most = max(most, tracemalloc.get_traced_memory()[1] - before - 4 * len(content) - 16 * MIB)
        found[f"{'repaired' if repair else 'as it is'}, {outcome}"] += 1
        if outcome != "loaded":
            continue
        try:
            scores = model.model_.predict(inputs[path])
            model.predict(inputs[path])
            if is_classifier(model):
                model.predict_proba(inputs[path])
            if not repair and not np.array_equal(scores, right[path]):
                wrong.append(f"case {case} of {path.name}: other predictions")
        except Exception as error:
            wrong.append(f"case {case} of {path.name}: predict raised {error!r}")
    return {
        "found": dict(found),
        "wrong": wrong,
        "slowest": slowest,
        "beyond": most,
        "resident": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident) / 1024,
    }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))))
