"""Compiles normscope/activations/rows.c into the wheel, where there is a C compiler.

Without one nothing is missing but time: the same is measured by operations of torch.
"""

import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "normscope/activations"


class CompiledRows(BuildHookInterface):
    """Adds the compiled program to a wheel, which is then one for this platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the wheel is put together."""
        source = Path(self.root, FOLDER, "rows.c")
        editable = version == "editable"  # which reads the source tree, and nothing of the wheel
        self.folder = tempfile.TemporaryDirectory()
        target = source.with_suffix(".so") if editable else Path(self.folder.name, "rows.so")
        if sys.platform != "linux" or not compile_rows(source, target):
            self.app.display_warning("rows.c is not compiled: `stats` takes longer on a CPU")
            return
        if not editable:
            build_data["force_include"][str(target)] = f"{FOLDER}/rows.so"
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"  # it knows nothing of Python

    def finalize(self, version: str, build_data: dict[str, Any], artifact: str) -> None:
        """Tidy up."""
        self.folder.cleanup()


def compile_rows(source: Path, target: Path) -> bool:
    """Compile with the first compiler that can; a library of an earlier source is never left."""
    target.unlink(missing_ok=True)
    named = os.environ.get("CC")
    compilers = [named] if named else [sysconfig.get_config_var("CC") or "cc", "gcc"]
    return any(compiled(shlex.split(compiler), source, target) for compiler in compilers)


def compiled(compiler: list[str], source: Path, target: Path) -> bool:
    """Tell whether a compiler made a library that takes OpenMP from whoever has loaded it."""
    flags = shlex.split(os.environ.get("CFLAGS", ""))
    own = ["-std=gnu11", "-O3", "-fno-fast-math", "-fPIC", "-fopenmp"]
    linked = target.with_suffix(".new")  # half a library would end the process that loads it
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "rows.o")
        try:
            subprocess.run([*compiler, *flags, *own, "-c", source, "-o", made], check=True)
            # Without -fopenmp, which would name a library of the system.
            subprocess.run([*compiler, *flags, "-shared", made, "-o", linked], check=True)
            linked.replace(target)
        except (OSError, subprocess.CalledProcessError):
            linked.unlink(missing_ok=True)
            return False
    return True
