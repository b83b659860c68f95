"""A build backend that builds nothing, put in the place of setuptools while pip fetches a source archive.

pip asks the build backend of a source archive for its metadata, which as a rule runs the package's own code.
This one answers from what is known already, so that nothing of the package is executed. It is copied as
`setuptools/build_meta.py` into a folder of its own; it must not import anything of ours.
"""

from __future__ import annotations

import os
from pathlib import Path

NAME_AND_VERSION = "ADVERSE_STAND_IN"


class _Backend:
    """The two calls of the build interface that pip makes for `pip download`."""

    def get_requires_for_build_wheel(self, _settings: object = None) -> list[str]:
        return []

    def prepare_metadata_for_build_wheel(self, metadata_directory: str, _settings: object = None) -> str:
        name, version = os.environ[NAME_AND_VERSION].split()
        folder = Path(metadata_directory, f"{name.replace('-', '_')}-{version}.dist-info")
        folder.mkdir()
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (folder / "METADATA").write_text(text, "utf-8")
        return folder.name


__legacy__ = _Backend()
