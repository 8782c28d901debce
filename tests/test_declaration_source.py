"""strategies/source/declarations.yaml: a mistake is one sentence, and an entry reaches each strategy that has it."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts import declarations, docs
from scripts.declarations import ROOT, SOURCE

type Yaml = dict[str, Any]
type Change = Callable[[Yaml], object]

TEXT = (ROOT / SOURCE).read_text(encoding="utf-8")
PLAN = "strategies/gpt5_plan_and_reflect.yaml"
REACT = "strategies/gpt5_react.yaml"
LANGUAGES = "en_US, ja_JP, zh_Hans, pt_BR"
STRATEGIES = "gpt5_function_calling, gpt5_react, gpt5_plan_and_reflect"
OUTPUT_KEYS = "name, only, type, description, items, properties"
NEW = "parameter made_up"
PAGE_REMEDY = "write it, or name another page without .md"
IN_ENGLISH = "Language of the answer. Optional, blank by default."


def new_parameter(**keys: object) -> Yaml:
    languages = {"en_US": "Language", "ja_JP": "言語", "zh_Hans": "语言", "pt_BR": "Idioma"}
    texts = {"label": languages, "help": {**languages, "en_US": IN_ENGLISH}}
    return {"name": "made_up", "page": "policies", "type": "string", "required": False, **texts, **keys}


def adds(**keys: object) -> Change:
    return lambda source: source["parameters"].append(new_parameter(**keys))


def adds_without(key: str) -> Change:
    entry = new_parameter()
    del entry[key]
    return lambda source: source["parameters"].insert(0, entry)


def adds_output(**keys: object) -> Change:
    entry = {"name": "made_up", "type": "string", "description": "The language of the answer.", **keys}
    return lambda source: source["outputs"].append(entry)


def written_root(root: Path, text: str) -> Path:
    """A folder with this source, and with the pages of the repository."""
    (root / "docs").symlink_to(ROOT / "docs")
    (root / SOURCE).parent.mkdir(parents=True)
    (root / SOURCE).write_text(text, encoding="utf-8")
    return root


def changed_root(root: Path, change: Change) -> Path:
    source = yaml.safe_load(TEXT)
    change(source)
    return written_root(root, yaml.safe_dump(source, allow_unicode=True))


MISTAKES: list[tuple[Change, str]] = [
    (adds_without("page"), f"{NEW} lacks `page`: the page of docs/ about it, without .md"),
    (adds_without("name"), "parameter number 1 lacks `name`: letters, digits and underscores"),
    (adds_without("label"), f"{NEW} lacks `label`: a short name in {LANGUAGES}"),
    (
        adds(page="polices"),
        f"{NEW}: `page` names 'polices' (did you mean 'policies'?), which docs/ does not have; {PAGE_REMEDY}",
    ),
    (
        adds(help={"en_US": IN_ENGLISH, "ja_JP": "言語", "zh_Hans": ""}),
        f"{NEW}: `help` lacks zh_Hans, pt_BR: a text needs {LANGUAGES}",
    ),
    (
        adds(label=dict.fromkeys(("en_US", "ja_JP", "zh_Hans", "pt_BR", "pt_PT"), "Language")),
        f"{NEW}: `label` has pt_PT, which Dify does not show: a text needs {LANGUAGES}",
    ),
    (adds(required="no"), f"{NEW}: `required` should be a valid boolean"),
    (adds(type="number", default=3), f"{NEW} is of type number and lacks `min`"),
    (adds(type="boolean"), f"{NEW} is of type boolean and lacks `default`"),
    (adds(name="query"), "parameter query is there 2 times: each name stands once"),
    (adds_output(name="sources"), "output sources is there 2 times: each name stands once"),
    (
        adds(only="gpt5_reactt"),
        f"{NEW}: `only` names 'gpt5_reactt' (did you mean 'gpt5_react'?); the strategies are {STRATEGIES}",
    ),
    (
        adds_output(page="outputs"),
        f"output made_up has an unknown key 'page'; the keys are {OUTPUT_KEYS}",
    ),
    (lambda source: source.pop("outputs"), "the file lacks `outputs`: a list of output variables"),
    (
        lambda source: source["outputs"].insert(0, "made_up"),
        f"output number 1 should have keys and values; the keys are {OUTPUT_KEYS}",
    ),
]


@pytest.mark.parametrize(("change", "sentence"), MISTAKES, ids=[sentence for _, sentence in MISTAKES])
def test_a_mistake_is_one_sentence_and_nothing_is_written(
    change: Change, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = changed_root(tmp_path, change)

    assert docs.main(root) == 1

    assert capsys.readouterr().err == f"{SOURCE}: {sentence}\n"
    assert list((root / "strategies").glob("*.yaml")) == []


def test_a_misspelt_key_is_named_beside_what_is_missing(tmp_path: Path) -> None:
    def misspells(source: Yaml) -> None:
        entry = new_parameter()
        entry["pgae"] = entry.pop("page")
        source["parameters"].append(entry)

    with pytest.raises(declarations.SourceError) as caught:
        declarations.read(changed_root(tmp_path, misspells))

    missing, unknown = str(caught.value).splitlines()
    assert missing.endswith(f"{NEW} lacks `page`: the page of docs/ about it, without .md")
    assert f"{NEW} has an unknown key 'pgae' (did you mean 'page'?); the keys are name, only" in unknown


def test_a_text_whose_colon_is_not_in_quotes_is_found_by_its_line(tmp_path: Path) -> None:
    line = TEXT.splitlines().index("    page: models") + 1
    text = TEXT.replace("    page: models", "    page: model: facts", 1)

    with pytest.raises(declarations.SourceError) as caught:
        declarations.read(written_root(tmp_path, text))

    wrong = "mapping values are not allowed here; a text with a colon stands in quotes"
    assert str(caught.value) == f"{SOURCE}: line {line} is not valid YAML: {wrong}"


def test_an_entry_without_its_dash_is_found_by_its_line(tmp_path: Path) -> None:
    line = TEXT.splitlines().index("  - name: tools") + 1
    text = TEXT.replace("  - name: tools", "    name: tools", 1)

    with pytest.raises(declarations.SourceError) as caught:
        declarations.read(written_root(tmp_path, text))

    wrong = "has `name` for a second time in one entry; a list's next entry begins with a dash"
    assert str(caught.value) == f"{SOURCE}: line {line} {wrong}"


def written_files(root: Path) -> dict[str, Yaml]:
    return {path: yaml.safe_load(text) for path, text in declarations.files(declarations.read(root)).items()}


def names(strategy: Yaml) -> list[str]:
    return [parameter["name"] for parameter in strategy["parameters"]]


def test_a_new_parameter_of_all_strategies_stands_before_those_of_one(tmp_path: Path) -> None:
    written = written_files(changed_root(tmp_path, adds()))

    assert names(written[REACT])[-1] == "made_up"
    of_plan = names(written[PLAN])
    assert of_plan.index("made_up") < of_plan.index("maximum_subtasks")
    entry = {key: value for key, value in new_parameter().items() if key != "page"}
    assert all(entry in strategy["parameters"] for strategy in written.values())


def test_a_parameter_and_an_output_of_one_strategy_are_in_its_file_alone(tmp_path: Path) -> None:
    def of_react(source: Yaml) -> None:
        adds(only="gpt5_react")(source)
        adds_output(only="gpt5_react")(source)

    written = written_files(changed_root(tmp_path, of_react))

    assert [path for path, strategy in written.items() if "made_up" in names(strategy)] == [REACT]
    outputs = {path: list(strategy["output_schema"]["properties"]) for path, strategy in written.items()}
    assert [path for path, variables in outputs.items() if "made_up" in variables] == [REACT]


def test_the_files_have_no_folded_lines_and_no_aliases(tmp_path: Path) -> None:
    """An anchor of the source, too, is written out."""
    long = "A word. " * 200
    entry = "  - &first\n    name: one\n    type: string\n    description: " + long + "\n"
    text = f"{TEXT}{entry}  - <<: *first\n    name: two\n    items: &items {{type: string}}\n"
    text += "  - <<: *first\n    name: three\n    items: *items\n"
    written = declarations.files(declarations.read(written_root(tmp_path, text)))[REACT]

    assert written.count(f"\n      description: {long.strip()}\n") == 3
    assert re.findall(r"(?m)(?:^|[:-]) [&*]\w+", written) == []
    assert written.startswith(f"# written by `make docs` from {SOURCE}; do not edit\nidentity:\n  author: ")
