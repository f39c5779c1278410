"""A distribution that an interpreter takes to be installed, by its metadata alone."""

from __future__ import annotations

from pathlib import Path


def fake(folder: Path, name: str, version: str, **files: str) -> None:
    """The metadata of a distribution, for the interpreter that finds it first on its path."""
    metadata = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    for file, text in files.items():
        (metadata / f"{file}.txt").write_text(text)
