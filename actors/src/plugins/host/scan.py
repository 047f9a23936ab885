"""Reads the code of a plugin without running it: scan.py SOURCE…, with the files of the plugin as JSON on standard input.

The arguments are the modules that the host serves, each after its name. Prints what the plugin uses and this gateway does
not have, as JSON. Only the standard library of Python 3.10 is used.
"""

import ast
import importlib
import importlib.metadata
import importlib.util
import json
import re
import sys

ENTRIES_MAX = 200
# Packages whose modules have other names.
PACKAGES = {
    "Crypto": "pycryptodome", "PIL": "pillow", "bs4": "beautifulsoup4", "cv2": "opencv-python", "dateutil": "python-dateutil",
    "dotenv": "python-dotenv", "jwt": "pyjwt", "lxml": "lxml", "magic": "python-magic", "sklearn": "scikit-learn",
    "socks": "pysocks", "yaml": "pyyaml", "zmq": "pyzmq",
}  # fmt: skip
# Attributes of served objects that exist only to say that they are not supported.
REFUSED = {"cursor", "extra", "raw"}


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


class Scan(ast.NodeVisitor):
    def __init__(self, finder, own, bundled):
        self.finder, self.own, self.bundled = finder, own, bundled
        self.file = ""
        self.unsupported, self.packages, self.folders = {}, set(), set()
        # What the imported names of a file mean.
        self.names = {}

    def read(self, file, text):
        self.file, self.names = file, {}
        try:
            tree = ast.parse(text, file)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            self.refuse(f"a file that is not Python {sys.version_info[0]}.{sys.version_info[1]}", getattr(error, "lineno", 1))
            return
        try:
            self.visit(tree)
        except RecursionError:
            self.refuse("a file with too deep expressions", 1)

    def refuse(self, name, line):
        self.unsupported.setdefault((name, self.file), line or 1)

    def visit_Import(self, node):
        for alias in node.names:
            root = alias.name.partition(".")[0]
            if self.module(alias.name, node.lineno):
                bound = alias.name if alias.asname else root
                self.names[alias.asname or root] = importlib.import_module(bound)

    def visit_ImportFrom(self, node):
        if node.level or not node.module:
            return
        if not self.module(node.module, node.lineno):
            return
        served = importlib.import_module(node.module)
        for alias in node.names:
            if alias.name == "*":
                continue
            try:
                self.names[alias.asname or alias.name] = getattr(served, alias.name)
            except (ImportError, AttributeError):
                self.refuse(f"{node.module}.{alias.name}", node.lineno)

    def module(self, name, line):
        """Notes a module that is missing. Returns whether the host serves it."""
        root = name.partition(".")[0]
        if root in self.own or root in sys.stdlib_module_names:
            return False
        if self.is_installed(root):
            return False
        if root in self.finder.ROOTS:
            if name in self.finder.MODULES:
                return True
            self.refuse(name, line)
            return False
        package = PACKAGES.get(root, root)
        if normal(package) not in self.bundled and normal(root) not in self.bundled:
            self.packages.add(normal(package))
        return False

    def is_installed(self, root):
        try:
            spec = importlib.util.find_spec(root)
        except (ImportError, ValueError):
            return False
        return spec is not None and not isinstance(spec.loader, self.finder.Finder)

    def visit_Attribute(self, node):
        chain = []
        it = node
        while isinstance(it, ast.Attribute):
            chain.insert(0, it.attr)
            it = it.value
        if isinstance(it, ast.Name) and it.id in self.names:
            self.follow(it.id, self.names[it.id], chain, node.lineno)
            return
        self.generic_visit(node)

    def follow(self, name, value, chain, line):
        for part in chain:
            is_served = isinstance(value, type) or type(value).__module__.startswith("headwater_compat")
            if not is_served or part.startswith("__"):
                return
            name = f"{name}.{part}"
            if part in REFUSED:
                return self.refuse(name, line)
            try:
                value = getattr(value, part)
            except (ImportError, AttributeError) as error:
                return self.refuse(getattr(error, "name", None) or name, line)
            except Exception:
                # It is read from the gateway.
                return

    def visit_Constant(self, node):
        if isinstance(node.value, str) and re.match(r"/data(/|$)", node.value) and "\n" not in node.value:
            parts = [it for it in node.value.split("/") if it]
            if len(parts) > 1 and ("." in parts[-1] or "{" in parts[-1] or "%" in parts[-1]):
                parts.pop()
            if ".." not in parts and len(parts) < 16:
                self.folders.add("/" + "/".join(parts))


def missing(requirements, bundled):
    """Returns the requirements that are neither bundled nor installed."""
    found = []
    for requirement in requirements:
        name = re.match(r"\s*([A-Za-z0-9._-]*)", requirement)[1]
        if normal(name) in bundled:
            continue
        try:
            importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            found.append(requirement)
    return found


def main():
    sources = dict(it.split("\n", 1) for it in sys.argv[1:])
    loader = {"__name__": "loader"}
    exec(sources["loader"], loader)  # noqa: S102, a file of this program
    loader["serve"](sources)
    finder = importlib.import_module("headwater_compat.finder")
    finder.install(None)
    given = json.load(sys.stdin)
    bundled = {normal(it.split("-")[0]) for it in given["wheels"]}
    own = {part for file in given["files"] for part in [file.split("/")[0].removesuffix(".py")]}
    own.add(given["key"])
    scan = Scan(finder, own, bundled)
    for file, text in sorted(given["files"].items()):
        scan.read(file, text)
    unsupported = [{"name": name, "file": file, "line": line} for (name, file), line in scan.unsupported.items()]
    print(
        json.dumps(
            {
                "unsupported": sorted(unsupported, key=lambda it: (it["file"], it["line"]))[:ENTRIES_MAX],
                "packages": sorted(scan.packages)[:ENTRIES_MAX],
                "folders": sorted(scan.folders)[:ENTRIES_MAX],
                "requirements": missing(given["requirements"], bundled),
            }
        )
    )


main()
