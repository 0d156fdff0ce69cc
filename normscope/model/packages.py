"""An import error -> the packages that are missing, and what to type to get them."""

import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec

from normscope.errors import FailureKind, NormscopeError

_PUBLISHED_AS = {"pil": "pillow", "cv2": "opencv-python", "sklearn": "scikit-learn"}
"""Packages whose name to import is not the one to install."""

_EXTRAS = {"timm": "vision", "pillow": "vision", "torchvision": "vision", "torchaudio": "audio"}
"""Packages that one of this package's extras brings."""

_BY_HAND = {
    # 0.20 took away the functions that transformers calls.
    "natten": "pip install 'natten<0.20' (it is compiled while it installs)",
    "detectron2": "install detectron2 from its source: no package index has it",
}
"""Packages that no extra can bring."""


def need_package(package: str, *, extra: str, what: str) -> None:
    """Raise `NormscopeError` of kind `missing_dependency` where a package is not there."""
    if find_spec(package) is None:
        raise NormscopeError(
            FailureKind.MISSING_DEPENDENCY,
            f"{what} needs the package {package}",
            f"pip install 'normscope[{extra}]'",
        )


def missing_packages(error: BaseException | None) -> tuple[str, ...]:
    """Return the packages that an error says are not there, as they are published."""
    while error is not None:
        names = tuple(_named(error))
        if names:
            return tuple(dict.fromkeys(_PUBLISHED_AS.get(name, name) for name in names))
        error = error.__cause__ or error.__context__
    return ()


def how_to_install(packages: Sequence[str]) -> str:
    """Return the command that brings the packages."""
    steps = [_BY_HAND[name] for name in packages if name in _BY_HAND]
    extras = sorted({_EXTRAS[name] for name in packages if name in _EXTRAS})
    others = [name for name in packages if name not in _BY_HAND and name not in _EXTRAS]
    if extras:
        steps.insert(0, f"pip install 'normscope[{','.join(extras)}]'")
    if others:
        steps.append(f"pip install {' '.join(others)}")
    return "; ".join(steps)


def _named(error: BaseException) -> Iterator[str]:
    if isinstance(error, ModuleNotFoundError) and error.name:
        yield error.name.partition(".")[0].lower()
    elif isinstance(error, ImportError):
        # transformers lists every package that a class lacks, a sentence each.
        for name in re.findall(r"requires the (?:following )?([\w.-]+) library", str(error)):
            yield name.lower()
