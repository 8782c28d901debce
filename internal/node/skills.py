"""Skills: the developer's instructions for certain tasks, which the model reads when a task needs them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import yaml

from internal.errors import InvalidParameters, OurWords
from internal.text.texts import looks_like_selector, missing_variable, read_pasted
from prompt import template

MAX_SKILLS = 50
MAX_SKILLS_BYTES = 200 * 1024
"""Maximum bytes of all skills together (docs/skills.md)."""
_MAX_HEADER_LENGTH = 10_000
"""Maximum characters of a header. PyYAML takes about 0.1 s for a header of this length."""
_READ = frozenset({"name", "description"})
_NAME = re.compile(r"""["']?name["']?\s*:""", re.IGNORECASE)
_FIELD = re.compile(r"([A-Za-z][\w-]*):(?:[ \t]+(.*))?")
_BLOCK_MARKS = frozenset({">", ">-", ">+", "|", "|-", "|+"})
"""YAML marks that introduce a text of several lines."""
_FORM = "a skill begins with the lines ---, name: …, description: … and ---, and its text follows"


@dataclass(frozen=True)
class Skill:
    name: str
    description: str
    body: str


@dataclass
class Skills:
    """The skills of a node, and the names of those that the conversation has read."""

    by_name: Mapping[str, Skill] = field(default_factory=dict)
    read: dict[str, None] = field(default_factory=dict)
    """Names of the skills that were read in all runs of the conversation, in the order of their last reading."""

    @classmethod
    def of(cls, text: str, read: Iterable[str]) -> "Skills":
        """Read the skills of a parameter, and keep the names in ``read`` that belong to skills.

        Raises:
            InvalidParameters: the text is not one or more skills.
        """
        by_name = {}
        if text.strip():
            by_name = {skill.name: skill for skill in read_skills(text)}
        return cls(by_name, {name: None for name in read if name in by_name})

    def look_up(self, arguments: Mapping[str, Any]) -> tuple[str, OurWords | None]:
        """Answer a call of ``read_skill``, whose schema allows only existing names."""
        name = str(arguments["name"])
        self.read = {**{each: None for each in self.read if each != name}, name: None}
        return self.by_name[name].body, None

    def known(self, most: float, size: Callable[[str], int]) -> list[Skill]:
        """Return the skills that earlier runs have read, the most recent first, as many as fit into ``most``."""
        newest = [self.by_name[name] for name in reversed(self.read)]
        ends = accumulate(size(skill.body) for skill in newest)
        return [skill for skill, end in zip(newest, ends, strict=True) if end <= most]

    def block(self, known: Sequence[Skill]) -> str:
        """Return the block of the system prompt about skills; "" if there are none."""
        if not self.by_name:
            return ""
        listed = (f"- {skill.name}: {skill.description}" for skill in self.by_name.values())
        block = "\n".join(["<skills>", template.SKILLS_HEADER, *listed, "</skills>"])
        return "\n\n".join([block, *(template.KNOWN_SKILL.format(name=each.name, body=each.body) for each in known)])


def read_skills(text: str) -> list[Skill]:
    """Read each document of a text in the form of SKILL.md.

    Raises:
        InvalidParameters: the text is invalid. The message says where, and what would be correct.
    """
    if looks_like_selector(text):
        raise InvalidParameters(f"parameter 'skills': {missing_variable(text)}")
    if (size := len(text.encode())) > MAX_SKILLS_BYTES:
        raise _refused(f"it has {size:,} bytes, and at most {MAX_SKILLS_BYTES:,} are allowed")
    skills = dict[str, Skill]()
    for line, fields, lines in _documents(read_pasted(text).replace("\r\n", "\n").split("\n")):
        named = [value for key, value in fields if key == "name"]
        described = [value for key, value in fields if key == "description"]
        body = "\n".join(lines).strip()
        if len(named) != 1 or not named[0]:
            raise _refused(f"the skill in line {line} has {'two names' if named[1:] else 'no name'}; {_FORM}")
        (name,) = named
        if name in skills:
            raise _refused(f"two skills have the name {name!r}; give each its own")
        if not body:
            raise _refused(f"the skill {name!r} has no text below its second ---")
        skills[name] = Skill(name, described[0] if described else "", body)
    if len(skills) > MAX_SKILLS:
        raise _refused(f"there are {len(skills)} skills, and at most {MAX_SKILLS} are allowed")
    return list(skills.values())


type _Fields = list[tuple[str, str]]


def _documents(lines: Sequence[str]) -> list[tuple[int, _Fields, list[str]]]:
    """Return the documents of a text: the number of the first line, the fields, and the lines of the body."""
    documents = list[tuple[int, _Fields, list[str]]]()
    at = 0
    while at < len(lines):
        if header := _header(lines, at):
            documents.append((at + 1, header[0], []))
            at = header[1]
            continue
        if documents:
            documents[-1][2].append(lines[at])
        elif lines[at].strip():
            raise _refused(f"line {at + 1} stands before the first skill; {_FORM}")
        at += 1
    return documents


def _header(lines: Sequence[str], start: int) -> tuple[_Fields, int] | None:
    """Return the fields of a document that begins here, and the line after them; None for a horizontal rule in a body.

    A header must have a name. Only the first header of a text may lack it, because only a header can stand there.
    """
    if lines[start].rstrip() != "---":
        return None
    end = next((at for at in range(start + 1, len(lines)) if lines[at].rstrip() == "---"), start)
    header = lines[start + 1 : end]
    if sum(map(len, header)) > _MAX_HEADER_LENGTH:
        return None
    is_first = not any(line.strip() for line in lines[:start])
    if not is_first and not any(_NAME.match(line) for line in header):
        return None
    fields = _by_yaml("\n".join(header)) or _by_lines(header)
    if not fields or not (is_first or any(key == "name" for key, _ in fields)):
        return None
    return fields, end + 1


def _by_yaml(header: str) -> _Fields:
    """Return the fields of a header by YAML's rules, each value on one line; empty if it is not a YAML mapping."""
    try:
        root = yaml.compose(header, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError):
        return []
    if not isinstance(root, yaml.MappingNode):
        return []
    fields: _Fields = []
    for key, value in root.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        if not isinstance(value, yaml.ScalarNode) and key.value in _READ:
            return []  # "[draft] Refunds" is intended as a text
        fields.append((key.value.lower(), _one_line(value)))
    return fields


def _one_line(value: yaml.Node) -> str:
    if not isinstance(value, yaml.ScalarNode):
        return ""
    return " ".join(value.value.split())


def _by_lines(header: Iterable[str]) -> _Fields:
    """Return the fields of a header that is not quite YAML, such as ``description: when: now``."""
    fields: _Fields = []
    for line in map(str.rstrip, header):
        if found := _FIELD.fullmatch(line):
            fields.append((found[1].lower(), found[2] or ""))
        elif fields and line.startswith((" ", "\t")):
            key, value = fields.pop()
            fields.append((key, f"{value} {line.strip()}"))
        elif line and not line.startswith(("#", "-")):
            return []
    return [(key, _plain(value)) for key, value in fields]


def _plain(value: str) -> str:
    """Return a value on one line, without YAML's quotes and marks."""
    words = value.split()
    text = " ".join(words[1:] if words and words[0] in _BLOCK_MARKS else words)
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1].strip()
    return text


def _refused(problem: str) -> InvalidParameters:
    return InvalidParameters(f"parameter 'skills': {problem}")
