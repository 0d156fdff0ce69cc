"""The versions that an answer depends on, read without importing the packages."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("normscope", "torch", "transformers")


@cache
def versions() -> Mapping[str, str]:
    """Return the version of each package that decides an answer; "unknown" if not installed."""
    return {package: _version(package) for package in PACKAGES}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
