"""Where a report was made: versions, machine, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import convexboost

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")


def now() -> str:
    """Return the time, to the minute."""
    return datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")


def commit() -> str:
    """Return the commit of the checkout that the library is imported from, or "" outside of one."""
    package = Path(convexboost.__file__).parent
    if not (package.parents[1] / ".git").exists():
        return ""
    try:
        found = subprocess.run(
            ["git", "-C", str(package), "describe", "--always", "--dirty", "--exclude=*"],
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.strip()


def environment() -> dict[str, str]:
    """Return versions and machine for the footer of a report."""
    found = {"convexboost": convexboost.__version__}
    if commit():
        found["commit"] = commit()
    found["Python"] = platform.python_version()
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    found["machine"] = f"{platform.machine()}, {platform.system()}, {os.cpu_count()} cores"
    return found
