"""The folder that a plugin writes beside its code.

Existing plugins keep settings, caches and results next to ``plugin.py``, but their code is read-only. So each has a folder
with copies of the files of its package, and ``__file__`` of its modules leads there. The modules themselves are always those
of the package: files that an earlier version wrote, or changed, do not run as a part of the next one.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import zipimport
from importlib import machinery
from pathlib import Path

# The folder below the files of the plugin. Its name is that of the plugin, as plugins expect.
PARENT = "plugins"
# Sizes, times and checksums of the files of the package when they were copied.
LIST = ".package.json"
# What an update replaces although the plugin has changed it is kept under its name with this ending.
KEPT = ".old"
# An archive has at most as much.
FILES_MAX = 2_000
BYTES_MAX = 200 << 20
SKIPPED = {"__pycache__", ".git"}
LOADERS = [
    (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
    (machinery.SourceFileLoader, machinery.SOURCE_SUFFIXES),
    (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
]


class FolderBesideCode:
    """The code of a plugin, and the folder beside it."""

    def __init__(self, code, data, logger):
        self.code = Path(code)
        self.folder = Path(data) / PARENT / self.code.name
        self._list = self.folder.parent / LIST
        self._logger = logger

    def update(self):
        """Copies what is new or other in the package, and removes what it no longer has. Other files stay."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self._logger.error("the folder beside the code of the plugin cannot be created: %s", error)
            return
        before, now = self._known(), {}
        for path in self._package():
            name = path.relative_to(self.code).as_posix()
            try:
                now[name] = self._copy(path, name, before.get(name))
            except OSError as error:
                self._logger.error("%s cannot be copied beside the code of the plugin: %s", name, error)
        for name in before.keys() - now.keys():
            self._forget(name, before[name])
        if now != before:
            self._write(now)

    def _package(self):
        """Lists the files of the package in a fixed order."""
        n_files = n_bytes = 0
        for folder, folders, names in os.walk(self.code):
            folders[:] = sorted(set(folders) - SKIPPED)
            for path in (Path(folder) / it for it in sorted(names)):
                if not path.is_file():
                    continue
                n_files, n_bytes = n_files + 1, n_bytes + path.stat().st_size
                if n_files > FILES_MAX or n_bytes > BYTES_MAX:
                    self._logger.error("the plugin has too many files: the rest is not copied beside its code")
                    return
                yield path

    def _copy(self, path, name, known):
        """Copies a file unless it is the one that was copied last. Returns what is known of it then."""
        target = self.folder / name
        stat = path.stat()
        entry = {"size": stat.st_size, "time": stat.st_mtime_ns}
        is_there = os.path.lexists(target)
        if is_there and known and all(known.get(it) == value for it, value in entry.items()):
            return known
        entry["sha256"] = digest(path)
        if is_there:
            if known and known.get("sha256") == entry["sha256"]:
                # The package has not changed this file, so that what the plugin made of it stays.
                return entry
            if self._is_changed(target, known or entry):
                self._logger.warning("an update replaces %s, which the plugin had changed: see %s", name, name + KEPT)
                os.replace(target, f"{target}{KEPT}")
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = f"{target}.part"
        shutil.copyfile(path, partial)
        os.replace(partial, target)
        return entry

    def _forget(self, name, known):
        """Removes a file that the package no longer has, unless the plugin has changed it."""
        target = self.folder / name
        try:
            # A file that could not be copied just now is still one of the package.
            if not (self.code / name).exists() and not self._is_changed(target, known):
                target.unlink(missing_ok=True)
        except OSError as error:
            self._logger.error("%s, which the plugin no longer has, cannot be removed: %s", name, error)

    @staticmethod
    def _is_changed(target, known):
        if not os.path.lexists(target):
            return False
        return target.is_symlink() or not target.is_file() or digest(target) != known.get("sha256")

    def _known(self):
        try:
            known = json.loads(self._list.read_text())
            return {name: entry for name, entry in known.items() if isinstance(entry, dict) and is_inside(name)}
        except (OSError, ValueError, AttributeError):
            return {}

    def _write(self, known):
        partial = self._list.with_suffix(".part")
        try:
            partial.write_text(json.dumps(known))
            os.replace(partial, self._list)
        except OSError as error:
            self._logger.error("what was copied beside the code of the plugin cannot be noted: %s", error)

    # Modules.

    def spec(self, name, file, search=None):
        """Returns what is needed to import a file of the package."""
        path = str(self.code / file)
        return self.moved(importlib.util.spec_from_file_location(name, path, submodule_search_locations=search))

    def moved(self, spec):
        """Lets the paths of a module lead to the folder beside the code."""
        if spec.origin:
            spec.origin = self._beside(spec.origin)
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations = [self._beside(it) for it in spec.submodule_search_locations]
        return spec

    def _beside(self, path):
        return self._replaced(path, self.code, self.folder) or path

    @staticmethod
    def _replaced(path, base, other):
        """Returns the path below another base; `None` if it is not below this one."""
        path = os.path.normpath(path)
        if path == str(base) or path.startswith(f"{base}{os.sep}"):
            return str(other) + path[len(str(base)) :]
        return None

    def importer(self, path):
        """Finds modules of the package for a folder beside the code. Folders that the plugin made itself are its own."""
        code = self._replaced(path, self.folder, self.code)
        if code and os.path.isfile(code):
            return zipimport.zipimporter(code)
        if not code or not os.path.isdir(code):
            raise ImportError(f"{path} is not a folder of the package")
        return PackageFinder(code, self)


class PackageFinder(machinery.FileFinder):
    """Finds modules in a folder of the package."""

    def __init__(self, code, beside):
        super().__init__(code, *LOADERS)
        self._shown_by = beside

    def find_spec(self, fullname, target=None):
        spec = super().find_spec(fullname, target)
        return spec and self._shown_by.moved(spec)


def digest(path):
    sha256 = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            sha256.update(piece)
    return sha256.hexdigest()


def is_inside(name):
    """Returns whether a name of the list stays below the folder: the plugin can write the list, too."""
    parts = name.split("/")
    return not name.startswith("/") and ".." not in parts and "" not in parts
