"""What one option alone needs -> whether it is installed."""

from importlib.util import find_spec

from normscope.errors import FailureKind, NormscopeError


def need_extra(package: str, *, extra: str, what: str) -> None:
    """Raise `NormscopeError` of kind `missing_dependency` where a package is not there."""
    if find_spec(package) is None:
        raise NormscopeError(
            FailureKind.MISSING_DEPENDENCY,
            f"{what} needs the package {package}",
            f"pip install 'normscope[{extra}]'",
        )
