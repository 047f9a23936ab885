"""Paths of the reference. Existing plugins name its data folder, ``/data``; here they mean the plugin's own files."""

import builtins
import functools
import io
import os
import pathlib
import sys

from . import link

ROOT = "/data"
# Functions of `os` by the number of their arguments that are paths.
FUNCTIONS = {
    1: "access chdir chmod chown listdir listxattr lstat mkdir mkfifo open readlink remove rmdir scandir stat statvfs truncate "
    "unlink utime",
    2: "link rename replace symlink",
}


class DataPaths:
    """Leads paths below ``/data`` to another folder, except for those that the plugin may really use."""

    def __init__(self, own, real):
        self.own = own.rstrip("/")
        self.real = [it.rstrip("/") for it in real if is_below(it, ROOT)]

    def path(self, path):
        """Returns the path that is meant. Descriptors and other paths are as they are."""
        try:
            text = os.fspath(path)
        except TypeError:
            return path
        is_bytes = isinstance(text, bytes)
        text = os.fsdecode(text) if is_bytes else text
        if not text.startswith(ROOT):
            return path
        plain = os.path.normpath(text)
        if not is_below(plain, ROOT) or any(is_below(plain, it) for it in self.real):
            return path
        link.say_once(f"{ROOT} leads to the plugin's own files; folders below it can be granted")
        moved = self.own + plain[len(ROOT) :]
        return os.fsencode(moved) if is_bytes else moved

    def wrapped(self, function, n_paths=1):
        @functools.wraps(function)
        def call(*args, **kwargs):
            moved = [self.path(it) for it in args[:n_paths]]
            for name in ("path", "src", "dst", "file"):
                if name in kwargs:
                    kwargs[name] = self.path(kwargs[name])
            return function(*moved, *args[n_paths:], **kwargs)

        return call


def is_below(path, folder):
    return path == folder or path.startswith(f"{folder}/")


def install(own, real):
    """Replaces the functions that open, list and change files. `real` are folders that are not replaced."""
    paths = DataPaths(own, [*real, sys.prefix, sys.base_prefix])
    replaced = {}
    for n_paths, names in FUNCTIONS.items():
        for name in names.split():
            function = getattr(os, name, None)
            if function:
                replaced[function] = paths.wrapped(function, n_paths)
                setattr(os, name, replaced[function])
    replaced[io.open] = builtins.open = io.open = paths.wrapped(io.open)
    # These tell callers what the functions can do.
    for supported in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
        supported.update([new for old, new in replaced.items() if old in supported])
    # It keeps functions of `os` from when it was imported.
    sys.modules.pop("tempfile", None)
    # Python 3.10 has the functions of `os` in a class, too.
    accessor = getattr(pathlib, "_NormalAccessor", None)
    for name, value in list(vars(accessor).items()) if accessor else ():
        value = getattr(value, "__func__", value)
        if callable(value) and value in replaced:
            setattr(accessor, name, staticmethod(replaced[value]))
