"""Build the wheel and the sdist, and try each in a clean environment: `make test-package`.

    python tests/packaging/try_package.py python3.11 python3.13

For every Python and both files: a new environment gets the file with its extras and what its tests need, and
a part of the tests runs there, from the sdist, which must hold all that they read.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXTRAS = "all"
#: Quick, and of every layer: public names, metadata, types, a user's learner and loss, and model files.
PART = (
    "tests/packaging",
    "tests/test_public_api.py",
    "tests/test_one_file.py",
    "tests/test_site.py",
    "tests/persistence/test_model_file.py",
)
WHERE = "import convexboost; print(convexboost.__file__, convexboost.__version__)"


def run(*command: object, **options: object) -> str:
    """Run a command; show its output if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode:
        print(done.stdout)
        raise SystemExit(f"failed: {' '.join(words)}")
    return done.stdout


def test_packages() -> list[str]:
    """Return what the part of the tests needs, with the versions that pyproject.toml asks for."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    return [
        given for given in groups["test"] + groups["lint"] if given.startswith(("pytest>", "hypo", "mypy"))
    ]


def main(pythons: list[str]) -> None:
    """Try both files with every Python."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        run(sys.executable, "-m", "build", "--outdir", work / "dist", ROOT)
        wheel, sdist = (next((work / "dist").glob(pattern)) for pattern in ("*.whl", "*.tar.gz"))
        with tarfile.open(sdist) as archive:
            archive.extractall(work / "unpacked", filter="data")
        (unpacked,) = (work / "unpacked").iterdir()
        for python in pythons:
            for file in (wheel, sdist):
                try_file(python, file, unpacked, work / "env")


def try_file(python: str, file: Path, unpacked: Path, environment: Path) -> None:
    """Install a file in a new environment and run a part of the tests there."""
    shutil.rmtree(environment, ignore_errors=True)
    run(python, "-m", "venv", environment)
    inside = environment / "bin" / "python"
    run(inside, "-m", "pip", "install", "--quiet", "--upgrade", "pip>=25.1")
    run(inside, "-m", "pip", "install", "--quiet", "--no-compile", f"{file}[{EXTRAS}]", *test_packages())
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    place, version = run(inside, "-c", WHERE, cwd=unpacked, env=clean).split()
    if environment not in Path(place).parents:
        raise SystemExit(f"convexboost was imported from {place}, not from {environment}")
    command = [inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", *PART]
    tests = run(*command, cwd=unpacked, env=clean | {"OMP_NUM_THREADS": "1"})
    run(environment / "bin" / "convexboost", "--help", cwd=environment, env=clean)
    print(
        f"{file.name}, {run(inside, '-V').strip()}, version {version}: {tests.splitlines()[-1]}", flush=True
    )


if __name__ == "__main__":
    main(sys.argv[1:])
