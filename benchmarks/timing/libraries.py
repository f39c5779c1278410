"""Kernels of released libraries, taken out of their files unchanged.

`python -m benchmarks.timing.libraries` downloads the releases with pip and writes each kernel, with what it uses of its
library, to a file of `build/libraries`: importing a library would import all that it depends on, and a machine that
measures needs no network then. `families.library_*` and `families.shelf_*` hold the sizes: they are those of models
and data that the libraries are used for, and the configuration is one that the library itself launches or tunes over.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.timing.family import Config, Launch, family

RELEASES = {
    "adasplash": "adasplash==0.2.2",
    "bitsandbytes": "bitsandbytes==0.50.2",
    "bm3d_triton": "bm3d-triton==0.1.1",
    "conch": "conch-triton-kernels==1.3",
    "cut_cross_entropy": "cut-cross-entropy==25.1.1",
    "fbgemm_gpu": "fbgemm-gpu-cpu==1.9.0",
    "fla": "fla-core==0.6.0",
    "flag_gems": "flag-gems==5.0.2",
    "flash_kmeans": "flash-kmeans==0.3.1",
    "flash_sinkhorn": "flash-sinkhorn==0.4.1",
    "flashlib": "flashlib==0.4.0",
    "flashnn": "flashnn==0.1.1",
    "gptq_triton": "gptq-triton==0.0.4",
    "hilbertsfc": "hilbertsfc==0.5.1",
    "ibu_boost": "ibu-boost==0.1.1",
    "lanczos_triton": "lanczos-triton==0.1.0",
    "late_interaction_kernels": "late-interaction-kernels==0.4.5",
    "liger_kernel": "liger-kernel==0.8.5",
    "lightllm": "lightllm==0.0.1",
    "localcorr": "localcorr==0.1.1",
    "mingru": "mingru-scans==0.2.0",
    "mlstm_kernels": "mlstm-kernels==2.0.6",
    "moe_ops": "moe-ops==0.1.0",
    "sglang": "sglang==0.5.10.post1",
    "spconv_triton": "spconv-triton==1.0.0",
    "torch_fps": "torch-fps==0.6.0",
    "torchao": "torchao==0.18.0",
    "torchnorm": "torchnorm==0.1.2",
    "transformer_engine": "transformer-engine==2.20.2",
    "tridec": "tridec==0.2.2",
    "triton_augment": "triton-augment==0.3.0",
    "unsloth": "unsloth==2026.10.9",
}
"""The requirement of each package."""

FOLDER = Path("build/libraries")
_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_24_x86_64", "manylinux2014_x86_64")
_KEPT_IMPORTS = ("math", "torch", "triton", "typing")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a kernel is defined."""

    package: str
    path: str
    """In the package, without `.py`."""
    kernel: str


SOURCES: dict[str, Source] = {}
"""Of each family, once `benchmarks.timing.families` is imported."""


def released(package: str, path: str, kernel: str, **options: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register the decorated function, which returns a grid and arguments, as a family of one configuration.

    `options`: constants of the kernel that are not among the arguments, `num_warps` and `num_stages`.
    """

    def register(arguments: Callable[[], Any]) -> Callable[[], Any]:
        source = Source(package, path, kernel)
        SOURCES[arguments.__name__] = source

        @functools.wraps(arguments)
        def prepare(config: Config) -> Launch:
            grid, *given = arguments()
            return Launch(loaded(source), grid, tuple(given), dict(config))

        family([options])(prepare)
        return arguments

    return register


def file_of(source: Source) -> Path:
    """The file that a kernel is written to."""
    return FOLDER / f"{source.package}-{source.path.rpartition('/')[2]}-{source.kernel}.py"


def loaded(source: Source) -> Any:
    """Import a kernel from its file.

    Raises:
        FileNotFoundError: if there is none.
    """
    file = file_of(source)
    if not file.exists():
        raise FileNotFoundError(f"no {file}: `python -m benchmarks.timing.libraries` downloads the kernels")
    specification = importlib.util.spec_from_file_location(file.stem.replace("-", "_"), file)
    if specification is None or specification.loader is None:
        raise ImportError(f"{file} is no module")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return getattr(module, source.kernel)


@dataclass(slots=True)
class _Taking:
    """Collects statements of a package's modules that a kernel needs, each after those that it uses itself."""

    root: Path
    """Holds the package's folder."""
    package: str
    statements: dict[str, None] = field(default_factory=dict)
    begun: set[tuple[Path, str]] = field(default_factory=set)

    def take(self, file: Path, name: str, is_kernel: bool = False) -> None:
        """Take what `name` is in a module: a function, a constant, or an import of another module's."""
        if (file, name) in self.begun:
            return
        self.begun.add((file, name))
        text = file.read_text()
        bound = _bound(ast.parse(text))
        statement = bound.get(name)
        if statement is None:
            return
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            self._take_import(file, statement, name)
            return
        decorators = list(statement.decorator_list) if isinstance(statement, ast.FunctionDef) else []
        of_decorators = {inner for one in decorators for inner in ast.walk(one)}
        for used in ast.walk(statement):
            if used in of_decorators:
                continue
            if isinstance(used, ast.Name) and used.id != name:
                self.take(file, used.id)
            if isinstance(used, ast.Attribute) and isinstance(used.value, ast.Name):
                self._take_attribute(file, bound, used.value.id, used.attr)
        written = [ast.get_source_segment(text, one) or "" for one in decorators]
        kept = [f"@{one}\n" for one in written if one.startswith("triton.jit")]
        if is_kernel and not kept:
            kept = ["@triton.jit\n"]
        if kept:
            self.statements["import triton"] = None
        self.statements["".join(kept) + (ast.get_source_segment(text, statement) or "")] = None

    def _take_import(self, file: Path, statement: ast.Import | ast.ImportFrom, name: str) -> None:
        alias = next(one for one in statement.names if (one.asname or one.name) == name)
        if isinstance(statement, ast.Import):
            if alias.name.partition(".")[0] in _KEPT_IMPORTS:
                self.statements[f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")] = None
            return
        module = self._module_of(file, statement)
        if module is None:
            origin = statement.module or ""
            if origin.partition(".")[0] in _KEPT_IMPORTS:
                self.statements[f"from {origin} import {alias.name} as {name}"] = None
            return
        if module.is_file() and alias.name in _bound(ast.parse(module.read_text())):
            self.take(module, alias.name)
            if alias.name != name:
                self.statements[f"{name} = {alias.name}"] = None

    def _take_attribute(self, file: Path, bound: dict[str, ast.stmt], name: str, attribute: str) -> None:
        """Take what is used of a module of the package that is imported as a whole."""
        statement = bound.get(name)
        if not isinstance(statement, ast.ImportFrom):
            return
        package = self._module_of(file, statement)
        alias = next(one for one in statement.names if (one.asname or one.name) == name)
        module = package.parent / f"{alias.name}.py" if package is not None else None
        if module is not None and module.is_file():
            self.take(module, attribute)
            self.statements["import types"] = None
            self.statements[f"{name} = types.ModuleType({name!r})"] = None
            self.statements[f"{name}.{attribute} = {attribute}"] = None

    def _module_of(self, file: Path, statement: ast.ImportFrom) -> Path | None:
        """The file of the package that a statement imports from; None for another package."""
        parts = (statement.module or "").split(".") if statement.module else []
        if statement.level:
            folder = file.parents[statement.level - 1]
        elif parts and parts[0] == self.package:
            folder = self.root
        else:
            return None
        place = folder.joinpath(*parts)
        return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _bound(tree: ast.Module) -> dict[str, ast.stmt]:
    """The statement that first binds each name of a module."""
    found: dict[str, ast.stmt] = {}
    for statement in _top(tree.body):
        names: list[str] = []
        if isinstance(statement, ast.FunctionDef):
            names = [statement.name]
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            names = [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
        elif isinstance(statement, ast.Assign):
            names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names = [statement.target.id]
        for name in names:
            found.setdefault(name, statement)
    return found


def _top(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, also those of its conditions and trials."""
    for statement in body:
        yield statement
        inners = ("body", "orelse", "handlers") if isinstance(statement, (ast.If, ast.Try)) else ()
        test = ast.unparse(statement.test) if isinstance(statement, ast.If) else ""
        if "environ" in test:
            inners = ("orelse", "body")  # Variables of the environment are as they are by default.
        if "__name__" in test:
            inners = ("orelse",)
        for inner in inners:
            for one in getattr(statement, inner, []):
                yield from _top(one.body) if isinstance(one, ast.ExceptHandler) else _top([one])


def taken(root: Path, source: Source) -> str:
    """The text of a kernel's file: the kernel as the package defines it, and what it uses of the package."""
    taking = _Taking(root, source.package)
    taking.take(root / source.package / f"{source.path}.py", source.kernel, is_kernel=True)
    header = f'"""{source.kernel} of {RELEASES[source.package]}, {source.package}/{source.path}.py."""'
    return "\n\n".join([header, *taking.statements]) + "\n"


def main() -> None:
    """Download the releases, and write the kernels."""
    import benchmarks.timing.families  # noqa: F401

    FOLDER.mkdir(parents=True, exist_ok=True)
    options = ["--no-deps", "--only-binary=:all:", "--python-version=3.12", "--implementation=cp"]
    options += [f"--platform={name}" for name in _PLATFORMS]
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "-d", folder, *options, *RELEASES.values()]
        subprocess.run(command, check=True)
        root = Path(folder) / "packages"
        for wheel in Path(folder).glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(root, [name for name in archive.namelist() if name.endswith(".py")])
        for source in SOURCES.values():
            file_of(source).write_text(taken(root, source))
    print(f"{len(SOURCES)} kernels of {len(RELEASES)} libraries in {FOLDER}")


if __name__ == "__main__":
    # Importing this module by its name: the families register themselves there.
    from benchmarks.timing.libraries import main as run

    run()
