"""The contents of a plugin's package, and the rules for its files."""

import ast
import contextlib
import posixpath
import re
import stat
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Self

from packaging.utils import canonicalize_name
from packaging.version import Version

from devhost.errors import DeclarationError
from devhost.plugin.dependencies import PYPROJECT, REQUIREMENTS, modules_of_environment, requirement_lines
from devhost.plugin.problems import Level, Problem
from devhost.protocol.wire import JsonObject
from devhost.text import worded

# Ignore files, parsed as Dify's packager does. Unlike in git, each line is matched on its own, and the first match
# excludes a path, so a line with `!` has no effect (docs/host-facts.md, "Packages"; recorded in
# devhost/tests/fixtures/dify/packager.json).

ANY_FOLDERS = "**"


@dataclass(frozen=True)
class IgnoreRules:
    patterns: tuple[re.Pattern[str], ...]
    negations: tuple[tuple[int, str], ...]
    """The lines that start with `!`, with their line numbers, which start at 1."""

    @classmethod
    def of(cls, text: str) -> Self:
        lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), start=1)]
        counted = [(number, line) for number, line in lines if line and not line.startswith("#")]
        patterns = (_expression(line) for _, line in counted if not line.startswith("!"))
        negations = ((number, line) for number, line in counted if line.startswith("!"))
        return cls(tuple(filter(None, patterns)), tuple(negations))

    def leaves_out(self, path: str, *, is_folder: bool) -> bool:
        written = path
        if is_folder:
            written = f"{path}/"
        return any(pattern.match(written) for pattern in self.patterns)


_PART = re.compile(r"\\(.)|(\[\^?(?:(?:\\.|[^]\\-])(?:-(?:\\.|[^]\\-]))?)+\])|([*?])|([^\\[])", re.DOTALL)
"""One element of a name in a pattern: an escaped character, a character class, a wildcard, or any other character.

In a class of Go's path/filepath, `^` negates, `!` does not, and `]` and `-` need a backslash.
"""


def _expression(pattern: str) -> re.Pattern[str] | None:
    """Returns the expression for the paths that a pattern excludes, including everything below a matching folder.

    The path of a folder ends with a slash. A pattern with a single name matches at any depth. The result is `None` for
    a pattern that Go cannot parse, which matches nothing.
    """
    names = pattern.removesuffix("/").split("/")
    parts = list[str]()
    skips = is_one = len(names) == 1
    for name in names:
        if name == "" or (name == ANY_FOLDERS and not is_one):
            skips = name == ANY_FOLDERS
        elif (ANY_FOLDERS in name and not is_one) or _PART.sub("", name):
            return None
        else:  # only the first matching folder counts
            parts.append(f"(?>{'(?:[^/]+/)*?' if skips else ''}(?=[^/]){_PART.sub(_in_python, name)}(?:/|\\Z))")
            skips = False
    ending = ""
    if pattern.endswith("/"):
        ending = "(?<=/)"
    with contextlib.suppress(re.error):  # a range that runs backwards
        if parts:
            return re.compile("".join(parts) + ending)
        return None
    return None


def _in_python(part: re.Match[str]) -> str:
    escaped, letters, wildcard, letter = part.groups()
    if letters:
        return f"(?!/){letters}"
    return {"*": "[^/]*", "?": "[^/]"}.get(wildcard) or re.escape(escaped or letter)


# The files of a folder that Dify's packager packs: all except those that `.difyignore` excludes. Without a
# `.difyignore`, `.gitignore` is used; without either file, everything is packed.

IGNORE_FILES = (".difyignore", ".gitignore")
FORBIDDEN_FOLDERS = frozenset(
    {
        *(".git", ".venv", "venv", "env", "node_modules", ".idea", ".vscode", "__pycache__"),
        *(".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".tox"),
    }
)


@dataclass(frozen=True)
class Contents:
    directory: Path
    ignored_by: str
    """The name of the ignore file; empty if there is none."""
    ignored: IgnoreRules
    paths: tuple[str, ...]
    """The packaged files as relative paths with slashes, sorted by code point."""
    forbidden_folders: tuple[str, ...]
    """Folders that a package must not contain, and whose files are not among the paths."""

    @classmethod
    def of(cls, directory: Path) -> Self:
        ignored_by = next((name for name in IGNORE_FILES if (directory / name).is_file()), "")
        lines = ""
        if ignored_by:
            lines = (directory / ignored_by).read_text(encoding="utf-8", errors="replace")
        ignored = IgnoreRules.of(lines)
        paths = list[str]()
        forbidden = list[str]()
        for folder, folders, files in directory.walk():
            beside = [(name, (folder / name).relative_to(directory).as_posix()) for name in folders]
            kept = {name: path for name, path in beside if not ignored.leaves_out(path, is_folder=True)}
            forbidden += (path for name, path in kept.items() if name in FORBIDDEN_FOLDERS)
            folders[:] = kept.keys() - FORBIDDEN_FOLDERS
            inside = ((folder / name).relative_to(directory).as_posix() for name in files)
            paths += (path for path in inside if not ignored.leaves_out(path, is_folder=False))
        return cls(directory, ignored_by, ignored, tuple(sorted(paths)), tuple(sorted(forbidden)))

    def __contains__(self, path: str) -> bool:
        return path in self.paths

    def absent(self, path: str) -> str:
        """Returns the reason why the package lacks the file, as the end of a sentence; empty if it has the file."""
        path = posixpath.normpath(path)
        if path in self.paths:
            return ""
        if not (self.directory / path).is_file():
            return "does not exist"
        if path.startswith(("../", "/")):
            return "is outside the plugin"
        if self.ignored_by:
            return f"is left out by {self.ignored_by}"
        return "is in a folder that is not packaged"

    def is_regular(self, path: str) -> bool:
        """Returns whether the path is a regular file, not a link, a pipe, a socket or a device."""
        return stat.S_ISREG((self.directory / path).lstat().st_mode)

    def read(self, path: str) -> bytes:
        """Returns the content of a file; empty for anything but a regular file, which `forbidden-file` refuses.

        Raises `DeclarationError` if the file cannot be read.
        """
        with worded(lambda why: DeclarationError(f"{self.directory / path} cannot be read: {why}")):
            if self.is_regular(path):
                return (self.directory / path).read_bytes()
            return b""

    def text(self, path: str) -> str:
        """Returns the content of a file as text, with replacement characters for invalid UTF-8."""
        return self.read(path).decode("utf-8", errors="replace")


def file_problems(contents: Contents, manifest: JsonObject) -> Iterator[Problem]:
    """Yields the problems of all rules below, except the rule for classes.

    That rule applies only to the files that declarations name.
    """
    yield from entrypoint_problems(contents, manifest)
    yield from dependency_problems(contents)
    yield from module_problems(contents)
    yield from ignore_problems(contents)
    yield from forbidden_problems(contents)
    yield from data_problems(contents)
    yield from size_problems(contents)
    yield from secret_problems(contents)
    yield from compile_problems(contents)
    yield from readme_problems(contents, manifest)
    yield from privacy_problems(contents, manifest)


def ignore_problems(contents: Contents) -> Iterator[Problem]:
    """Yields a problem for each line with `!`; only a notice in a `.gitignore`, where git supports such lines."""
    for number, line in contents.ignored.negations:
        sentence = f"{line!r} does nothing: Dify's packager has no exceptions; name only the files to leave out"
        level: Level = "refused" if contents.ignored_by == IGNORE_FILES[0] else "notice"
        yield Problem("ignore-file", contents.ignored_by, f"line {number}", sentence, level=level)


# Files that a package must not contain, and its maximum size. The names come from the marketplace's pre-check. The
# sizes come from the daemon (MAX_PLUGIN_PACKAGE_SIZE) and the pre-check.

MAX_BYTES = 50 * 1024 * 1024
"""The maximum total size of all files, and of the package."""
MAX_FILES = 5000
PATTERNS = (
    *(".env", ".env.*", ".DS_Store", "*.pyc", "*.pyo", "*.log", "*.pem", "*.key", "*.tmp", "*.bak", "*.difypkg"),
    *("*~", "*.swp", "*.swo"),
    *("*.so", "*.dll", "*.dylib", "*.exe", "*.o", "*.a"),
)


def forbidden_problems(contents: Contents) -> Iterator[Problem]:
    remedy = f"add it to {contents.ignored_by or '.difyignore'}"
    for folder in contents.forbidden_folders:
        yield Problem("forbidden-file", f"{folder}/", "", f"a package must not hold it; {remedy}")
    for path in contents.paths:
        name = path.rpartition("/")[2]
        if not contents.is_regular(path):
            sentence = f"a link or a device, not a file; put the file itself here, or {remedy}"
            yield Problem("forbidden-file", path, "", sentence)
        elif name != ".env.example" and any(fnmatch(name, pattern) for pattern in PATTERNS):
            yield Problem("forbidden-file", path, "", f"a package must not hold it; {remedy}")


# Data of the machine on which the plugin was written. A package may contain it on purpose, so this is only a notice.

DATABASE = b"SQLite format 3\0"
DATA = ("*.db", "*.db-*", "*.sqlite", "*.sqlite-*", "*.sqlite3", "*.sqlite3-*", "*.mdb", "*.duckdb", "*.rdb")
DUMPS = ("*.dump", "*.sql.gz", "*.bson")
KEYS = ("id_rsa", "id_ed25519", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk")
LINES_OF_A_DUMP = re.compile(rb"^(?:INSERT INTO |COPY \S+ .*FROM stdin;)", re.MULTILINE | re.IGNORECASE)


def data_problems(contents: Contents) -> Iterator[Problem]:
    remedy = f"add it to {contents.ignored_by or '.difyignore'} unless everybody may read it"
    for path in contents.paths:
        if contents.is_regular(path) and (kind := _data(contents, path)):
            yield Problem("data", path, "", f"{kind} is packed: {remedy}", level="notice")


def _data(contents: Contents, path: str) -> str:
    """Returns the kind of data that the file contains; empty for other files."""
    name = path.rpartition("/")[2].lower()

    def fits(patterns: Sequence[str]) -> bool:
        return any(fnmatch(name, pattern) for pattern in patterns)

    if name == "pyvenv.cfg":
        return "a virtual environment"
    if fits(KEYS):
        return "a file with keys"
    if fits(DATA) or contents.read(path).startswith(DATABASE):
        return "a database"
    if fits(DUMPS) or (name.endswith(".sql") and LINES_OF_A_DUMP.search(contents.read(path))):
        return "a dump of a database"
    return ""


def size_problems(contents: Contents, most_bytes: int = MAX_BYTES, most_files: int = MAX_FILES) -> Iterator[Problem]:
    total = sum((contents.directory / path).lstat().st_size for path in contents.paths)
    if total > most_bytes or len(contents.paths) > most_files:
        has = f"{len(contents.paths):,} files with {total:,} bytes"
        most = f"{most_files:,} with {most_bytes:,}"
        yield Problem("size", ".", "", f"{has}; at most {most} are taken")


# The documents of a package: READMEs and the privacy policy. Only the marketplace requires them; Dify installs a plugin
# without them.

README = "README.md"
CODE_BLOCK = re.compile(r"^(`{3,}|~{3,}).*?^\1", re.MULTILINE | re.DOTALL)


def readme_problems(contents: Contents, manifest: JsonObject) -> Iterator[Problem]:
    if README not in contents:
        yield Problem("readme", README, "", f"it {contents.absent(README)}", level="marketplace")
        return
    text = contents.text(README)
    if found := re.search(r"[\u3400-\u4dbf\u4e00-\u9fff]", CODE_BLOCK.sub("", text)):
        sentence = f"{found[0]!r} is a Chinese character outside a code block; READMEs in other languages"
        yield Problem("readme", README, "", f"{sentence} are readme/README_zh_Hans.md and so on", level="marketplace")
    repo = manifest.get("repo")
    if isinstance(repo, str) and repo and repo not in text:
        yield Problem("readme", README, "", f"it does not contain the repository's address {repo}", level="marketplace")


def privacy_problems(contents: Contents, manifest: JsonObject) -> Iterator[Problem]:
    path = manifest.get("privacy")
    if not isinstance(path, str) or not path or re.match(r"[a-z]+://", path):
        return
    text = ""
    if path in contents:
        text = contents.text(path).strip()
    if not text or "please fill in the privacy policy" in text.lower():
        reason = contents.absent(path) or "is empty, or the template's: say which data the plugin handles"
        yield Problem("privacy", "manifest.yaml", "privacy", f"{path} {reason}", level="marketplace")


# The Python files of a package. The daemon runs compileall after the installation, and starts `python -m ENTRYPOINT`.


def compile_problems(contents: Contents) -> Iterator[Problem]:
    for path in contents.paths:
        if not path.endswith(".py"):
            continue
        try:
            with warnings.catch_warnings(action="ignore"):
                compile(contents.read(path), path, "exec", dont_inherit=True)
        except SyntaxError as error:
            yield Problem("compile", path, f"line {error.lineno or 1}", error.msg)


def class_problems(contents: Contents, path: str) -> Iterator[Problem]:
    """Yields the problems of a class for a tool or a strategy.

    The method `_invoke` must be a generator, or return the messages of a generator.
    """
    try:
        parsed = list(ast.walk(ast.parse(contents.read(path))))
    except SyntaxError:
        return
    classes = [node for node in parsed if isinstance(node, ast.ClassDef)]
    methods = [node for node in parsed if isinstance(node, ast.FunctionDef) and node.name == "_invoke"]
    if methods and classes and not any(each.bases for each in classes):
        sentence = "no class has a base, so the SDK finds none: write class Name(Tool), or (AgentStrategy)"
        yield Problem("source", path, f"line {classes[0].lineno}", sentence)
    for method in methods:
        inside = list(_of_its_own(method))
        is_abstract = isinstance(method.body[-1], ast.Raise)
        returned = [node.value for node in inside if isinstance(node, ast.Return)]
        yields = [node for node in inside if isinstance(node, ast.Yield | ast.YieldFrom)]
        right = "write yield self.create_text_message(…)"
        if not yields and not is_abstract and all(map(_is_no_generator, returned)):
            sentence = f"_invoke has no yield, so its messages are lost: {right}, not return"
            yield Problem("yield", path, f"line {method.lineno}", sentence)
        for each in yields:
            if isinstance(each.value, ast.Constant | ast.JoinedStr | ast.BinOp | ast.List):
                sentence = f"_invoke yields what is not a message, and fails: {right}"
                yield Problem("yield", path, f"line {each.lineno}", sentence)


def _of_its_own(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a function, without the nodes of nested functions."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.Lambda):
            yield child
            yield from _of_its_own(child)


def _is_no_generator(returned: ast.expr | None) -> bool:
    match returned:
        case None | ast.Constant() | ast.JoinedStr() | ast.Dict():
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name.startswith("create_")
    return False


def entrypoint_problems(contents: Contents, manifest: JsonObject) -> Iterator[Problem]:
    match manifest:
        case {"meta": {"runner": {"entrypoint": str(module)}}} if module:
            path = f"{module.replace('.', '/')}.py"
            if (reason := contents.absent(path)) and f"{module.replace('.', '/')}/__main__.py" not in contents:
                yield Problem("entrypoint", "manifest.yaml", "meta.runner.entrypoint", f"{path} {reason}")


# The packages that a plugin needs, according to the file that the daemon reads.

SDK = canonicalize_name("dify-plugin")
OLDEST_SDK = Version("0.9.0")
"""The oldest SDK that the marketplace accepts."""


def dependency_problems(contents: Contents) -> Iterator[Problem]:
    file = PYPROJECT if PYPROJECT in contents else REQUIREMENTS
    if file not in contents:
        yield Problem("dependency", file, "", f"it {contents.absent(file)}: Dify cannot install the plugin")
        return
    if not contents.is_regular(file):
        return
    try:
        lines = list(requirement_lines(contents.directory, file))
    except (OSError, ValueError) as error:
        yield Problem("dependency", file, "", f"it cannot be read: {error}")
        return
    found = {canonicalize_name(line.requirement.name): line.requirement for line in lines if line.requirement}
    for line in lines:
        requirement = line.requirement
        if line.fault:
            sentence = f"{line.text!r} cannot be read, so that Dify cannot install the plugin: {line.fault}"
            yield Problem("dependency", file, line.place, sentence)
        elif requirement is None or requirement.url or not requirement.specifier:
            sentence = f"{line.text!r} is not a name with a version from the registry, such as httpx==0.28.1"
            yield Problem("dependency", file, line.place, sentence, level="marketplace")
    sdk = found.get(SDK)
    if sdk is not None and sdk.specifier:
        if all(Version(each.version.removesuffix(".*")) < OLDEST_SDK for each in sdk.specifier):
            sentence = f"{sdk} is older than {OLDEST_SDK}, the oldest SDK that the marketplace takes"
            yield Problem("dependency", file, "", sentence, level="marketplace")
    elif sdk is None and all(line.requirement for line in lines):  # a path or an address may provide it
        yield Problem("dependency", file, "", f"{SDK} is missing: without the SDK the plugin does not start")


def module_problems(contents: Contents) -> Iterator[Problem]:
    """Yields a notice for each imported module that no requirement provides, if the plugin has its own environment."""
    try:
        provided = modules_of_environment(contents.directory)
    except (OSError, ValueError):  # the rule above reports this
        return
    if not provided:
        return
    own = {path.partition("/")[0].removesuffix(".py") for path in contents.paths}
    known = own | sys.stdlib_module_names | {name for name, is_brought in provided.items() if is_brought}
    told = set[str]()
    for path in contents.paths:
        for module, line in _imports(contents, path):
            if module in known or module in told:
                continue
            told.add(module)
            sentence = f"no requirement brings the module {module}"
            if module not in provided:
                sentence = f"no package in the plugin's .venv has the module {module}"
            yield Problem("dependency", path, f"line {line}", sentence, level="notice")


def _imports(contents: Contents, path: str) -> list[tuple[str, int]]:
    """Returns the top-level names of imported modules with their lines.

    Imports that may fail and imports for type checkers are not included.
    """
    if not path.endswith(".py"):
        return []
    try:
        parsed = ast.parse(contents.read(path))
    except SyntaxError:
        return []
    found: list[tuple[str, int]] = []
    waiting: list[ast.AST] = [parsed]
    while waiting:
        match waiting.pop():
            case ast.Import(names=names, lineno=line):
                found += [(each.name.partition(".")[0], line) for each in names]
            case ast.ImportFrom(module=str(module), level=0, lineno=line):
                found.append((module.partition(".")[0], line))
            case ast.Try(handlers=[_, *_]):
                continue
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), orelse=otherwise):
                waiting += otherwise
            case node:
                waiting += ast.iter_child_nodes(node)
    return sorted(found, key=lambda each: each[1])


# Keys and tokens in the files of a package, in the formats of known services. Messages never quote the values.

SECRET = re.compile(
    r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----|\bsk-(?:[a-z]+-)*[A-Za-z0-9_]{20,}|\bgh[opsur]_[A-Za-z0-9]{30,}"
    r"|\bgithub_pat_\w{30,}|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{35}|\bxox[abprs]-\d[0-9A-Za-z-]{9,}"
)


def secret_problems(contents: Contents) -> Iterator[Problem]:
    for path in contents.paths:
        for number, line in enumerate(contents.text(path).splitlines(), start=1):
            if SECRET.search(line):
                yield Problem("secret", path, f"line {number}", "it seems to contain a key; a package is public")
