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
        if self.target_name != "wheel" or sys.platform != "linux":
            return
        source = Path(self.root, FOLDER, "rows.c")
        editable = version == "editable"  # which reads the source tree, and nothing of the wheel
        folder = source.parent if editable else Path(tempfile.mkdtemp())
        try:
            compile_rows(source, folder / "rows.so")
        except (OSError, subprocess.CalledProcessError) as error:
            self.app.display_warning(f"rows.c is not compiled, and `stats` takes longer: {error}")
            return
        if not editable:
            build_data["force_include"][str(folder / "rows.so")] = f"{FOLDER}/rows.so"
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"  # it knows nothing of Python


def compile_rows(source: Path, target: Path) -> None:
    """Compile a library that takes OpenMP from whoever has loaded it: torch has its own."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    flags = ["-std=gnu11", "-O3", "-fPIC", "-fopenmp", *shlex.split(os.environ.get("CFLAGS", ""))]
    with tempfile.TemporaryDirectory() as folder:
        compiled = Path(folder, "rows.o")
        subprocess.run([*compiler, *flags, "-c", source, "-o", compiled], check=True)
        # Without -fopenmp, which would name a library of the system.
        subprocess.run([*compiler, "-shared", compiled, "-o", target], check=True)
