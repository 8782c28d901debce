"""Reads strategies/source/declarations.yaml, which declares each parameter and each output variable once.

`files` returns the YAML files of the strategies for Dify. `scripts/docs.py` writes them.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from devhost.plugin.problems import LANGUAGES
from devhost.words import misspelt

ROOT = Path(__file__).resolve().parent.parent
SOURCE = "strategies/source/declarations.yaml"
HEAD = f"# written by `make docs` from {SOURCE}; do not edit\n"
NEEDED = {"number": ("default", "min"), "boolean": ("default",)}
"""Keys that a parameter of a type needs."""


class SourceError(Exception):
    """Raised for an invalid source. The message has one line for each mistake."""


def _in_each_language(texts: dict[str, str]) -> dict[str, str]:
    needed = f"a text needs {', '.join(LANGUAGES)}"
    missing = [language for language in LANGUAGES if not texts.get(language)]
    unknown = [language for language in texts if language not in LANGUAGES]
    if missing:
        raise ValueError(f"lacks {', '.join(missing)}: {needed}")
    if unknown:
        raise ValueError(f"has {', '.join(unknown)}, which Dify does not show: {needed}")
    return texts


type Translated = Annotated[dict[str, str], AfterValidator(_in_each_language)]

# The error for a missing key quotes the description of the field.
_NAME = Field(description="letters, digits and underscores")
_LABEL = Field(description=f"a short name in {', '.join(LANGUAGES)}")


class _Checked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Strategy(_Checked):
    name: str = _NAME
    module: str = Field(description="the Python file with its class, such as strategies/gpt5_react.py")
    label: Translated = _LABEL
    description: Translated = Field(description=f"what it does, in {', '.join(LANGUAGES)}")


class _Variable(_Checked):
    name: str = _NAME
    only: str | None = None
    """The only strategy with this entry; None if all strategies have it."""


class Parameter(_Variable):
    """A parameter of a strategy. The fields are in the order of the keys in the written files."""

    page: str = Field(description="the page of docs/ about it, without .md")
    type: str = Field(description="a type of Dify's, such as string, number or boolean")
    scope: str | None = None
    required: bool = Field(description="true or false; saved nodes do not have a new parameter, so false")
    auto_generate: dict[str, str] | None = None
    default: Any = None
    min: int | None = None
    max: int | None = None
    label: Translated = _LABEL
    help: Translated = Field(description=f"when to set it, in {', '.join(LANGUAGES)}")

    @model_validator(mode="after")
    def _has_what_its_type_needs(self) -> Self:
        missing = [f"`{key}`" for key in NEEDED.get(self.type, ()) if key not in self.model_fields_set]
        if missing:
            raise ValueError(f"is of type {self.type} and lacks {' and '.join(missing)}")
        return self


class Output(_Variable):
    type: str = Field(description="a type of JSON Schema, such as string, array or object")
    description: str = Field(description="what it holds and when it comes out, in English")
    items: dict[str, Any] | None = None
    properties: dict[str, Any] | None = None


class Source(_Checked):
    author: str = Field(description="the author in manifest.yaml")
    features: list[str] = Field(description="Dify's features of an agent strategy")
    strategies: list[Strategy] = Field(description="a list of strategies")
    parameters: list[Parameter] = Field(description="a list of parameters")
    outputs: list[Output] = Field(description="a list of output variables")


_ENTRIES: Mapping[str, tuple[str, type[_Checked]]] = {
    "strategies": ("strategy", Strategy),
    "parameters": ("parameter", Parameter),
    "outputs": ("output", Output),
}
"""The word for an entry and its type, for each list in the source."""


def read(root: Path = ROOT) -> Source:
    """Read and check the source.

    Raises:
        SourceError: the source is not valid YAML, or an entry is wrong.
    """
    try:
        raw = yaml.load((root / SOURCE).read_text(encoding="utf-8"), _Loader)  # noqa: S506 - the loader is a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = 1 + (mark.line if mark else 0)
        remedy = "a text with a colon stands in quotes"
        raise _source_error([f"line {line} is not valid YAML: {error.problem}; {remedy}"]) from None
    try:
        source = Source.model_validate(raw)
    except ValidationError as error:
        raise _source_error(_sentence(each, raw) for each in error.errors()) from None
    pages = {page.stem for page in (root / "docs").glob("*.md")}
    mistakes = [*_duplicates(source), *_unknown_strategies(source), *_unknown_pages(source, pages)]
    if mistakes:
        raise _source_error(mistakes)
    return source


class _Loader(yaml.SafeLoader):
    """A loader that refuses a repeated key in an entry. PyYAML would use the last one, but a dash may be missing."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                line = key.start_mark.line + 1
                remedy = "a list's next entry begins with a dash"
                raise _source_error([f"line {line} has `{key.value}` for a second time in one entry; {remedy}"])
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def _source_error(sentences: Iterable[str]) -> SourceError:
    return SourceError("\n".join(f"{SOURCE}: {sentence}" for sentence in sentences))


def _sentence(error: ErrorDetails, raw: Any) -> str:  # noqa: ANN401 - YAML
    """Return a sentence about an error of pydantic, with the place in the source and a correct value."""
    where, entry_type, way = _place(error["loc"], raw)
    key = ".".join(str(part) for part in way)
    fields = entry_type.model_fields
    match error["type"]:
        case "missing":
            return f"{where} lacks `{key}`: {fields[key].description}"
        case "extra_forbidden":
            return f"{where} has an unknown key {misspelt(key, fields)}; the keys are {', '.join(fields)}"
        case "model_type":
            return f"{where} should have keys and values; the keys are {', '.join(fields)}"
        case "value_error":
            wrong = error["msg"].removeprefix("Value error, ")
            if key:
                where += f": `{key}`"
            return f"{where} {wrong}"
    wrong = error["msg"].removeprefix("Input ")
    return f"{where}: `{key}` {wrong}"


def _place(way: tuple[int | str, ...], raw: Any) -> tuple[str, type[_Checked], tuple[int | str, ...]]:  # noqa: ANN401
    """Return a name for the entry, its type, and the path from the entry to the error."""
    match way:
        case (str(part), int(position), *rest):
            word, entry_type = _ENTRIES.get(part, (part, Source))
            entry = raw[part][position]
            name = entry.get("name") if isinstance(entry, Mapping) else None
            return f"{word} {name or f'number {position + 1}'}", entry_type, tuple(rest)
    return "the file", Source, way


def _duplicates(source: Source) -> Iterator[str]:
    lists: Mapping[str, Sequence[Strategy | Parameter | Output]] = {
        "strategy": source.strategies,
        "parameter": source.parameters,
        "output": source.outputs,
    }
    for word, entries in lists.items():
        names = [entry.name for entry in entries]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"{word} {name} is there {names.count(name)} times: each name stands once"


def _unknown_strategies(source: Source) -> Iterator[str]:
    names = [strategy.name for strategy in source.strategies]
    known = f"the strategies are {', '.join(names)}"
    lists: Mapping[str, Sequence[_Variable]] = {"parameter": source.parameters, "output": source.outputs}
    for word, variables in lists.items():
        for each in variables:
            if each.only is not None and each.only not in names:
                yield f"{word} {each.name}: `only` names {misspelt(each.only, names)}; {known}"


def _unknown_pages(source: Source, pages: set[str]) -> Iterator[str]:
    for parameter in source.parameters:
        if parameter.page not in pages:
            name = misspelt(parameter.page, pages)
            remedy = "write it, or name another page without .md"
            yield f"parameter {parameter.name}: `page` names {name}, which docs/ does not have; {remedy}"


def of_strategy[T: (Parameter, Output)](entries: Sequence[T], strategy: str) -> list[T]:
    """Return the entries of a strategy: first those of all strategies, then its own."""
    common = [entry for entry in entries if entry.only is None]
    return common + [entry for entry in entries if entry.only == strategy]


def files(source: Source) -> dict[str, str]:
    """Return the text of each strategy's YAML file, by its path in the repository."""
    return {f"strategies/{each.name}.yaml": _yaml(_declared(source, each)) for each in source.strategies}


def _declared(source: Source, strategy: Strategy) -> dict[str, Any]:
    """Return the declaration of a strategy in Dify's form."""
    return {
        "identity": {"author": source.author, "name": strategy.name, "label": strategy.label},
        "description": strategy.description,
        "features": source.features,
        "parameters": [
            parameter.model_dump(exclude_unset=True, exclude={"only", "page"})
            for parameter in of_strategy(source.parameters, strategy.name)
        ],
        "output_schema": {
            "type": "object",
            "properties": {
                output.name: output.model_dump(exclude_unset=True, exclude={"name", "only"})
                for output in of_strategy(source.outputs, strategy.name)
            },
        },
        "extra": {"python": {"source": strategy.module}},
    }


class _Dumper(yaml.SafeDumper):
    """A dumper that indents lists, and repeats equal values instead of writing an alias."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - as PyYAML calls it
        return True


def _yaml(declared: Mapping[str, Any]) -> str:
    return HEAD + yaml.dump(declared, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=float("inf"))
