"""Imports the modules of this package by their sources. Executed before the package exists."""

import importlib.abc
import importlib.machinery
import sys

PACKAGE = "headwater_compat"


class Bundled(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    def __init__(self, sources):
        self._sources = sources

    def find_spec(self, name, path=None, target=None):
        if name == PACKAGE:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        if name.startswith(f"{PACKAGE}.") and name.rpartition(".")[2] in self._sources:
            return importlib.machinery.ModuleSpec(name, self)
        return None

    def get_source(self, name):
        return self._sources["__init__" if name == PACKAGE else name.rpartition(".")[2]]

    def is_package(self, name):
        return name == PACKAGE


def serve(sources):
    sys.meta_path.append(Bundled(sources))
