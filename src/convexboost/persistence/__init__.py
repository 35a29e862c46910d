"""Model files: a safe, versioned, checksummed format on safetensors (docs/model-file.md).

`_container` writes and reads the file, `_values` turns values into JSON and arrays.  Which attributes of an
estimator are written is said in `convexboost.estimators._saved`.
"""

from convexboost.persistence._container import VERSION, ModelFormatError, naming_the_file, read, write
from convexboost.persistence._values import Reader, UnwritableError, Writer, fits

__all__ = [
    "VERSION",
    "ModelFormatError",
    "Reader",
    "UnwritableError",
    "Writer",
    "fits",
    "naming_the_file",
    "read",
    "write",
]
