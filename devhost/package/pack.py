"""The bytes of a `.difypkg`: a zip file of a plugin's contents.

In: `Contents`. Out: bytes that depend on the files alone: in the order of their names, with the same time and the same
permissions for all. Folders have no entries, as in those of Dify's own packager.
"""

import io
import zipfile

from devhost.plugin.contents.files import Contents

EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The first time that a zip file can hold."""
UNIX = 3
READABLE = 0o100644 << 16
"""A file that its owner may write and all may read, in the place of a zip entry for Unix's mode."""


def packed(contents: Contents) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as package:
        for path in contents.paths:
            entry = zipfile.ZipInfo(path, EARLIEST)
            entry.create_system, entry.external_attr = UNIX, READABLE
            package.writestr(entry, contents.read(path), zipfile.ZIP_DEFLATED, 9)
    return file.getvalue()
