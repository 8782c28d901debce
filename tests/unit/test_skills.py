"""Which documents a text of skills has, and what cannot be read."""

import pytest

from internal.errors import InvalidParameters
from internal.node.skills import MAX_SKILLS, MAX_SKILLS_BYTES, Skill, Skills, read_skills


def document(name: str = "refunds", body: str = "Ask for the order.", description: str = "Money back.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n{body}\n"


RULES = "First.\n\n---\n\nSecond.\n---\nNot a key\n---\nname: but never closed"
READ: dict[str, tuple[str, list[Skill]]] = {
    "one": (document(), [Skill("refunds", "Money back.", "Ask for the order.")]),
    "several": (
        document("a") + "\n" + document("b", "Two\n\nlines."),
        [Skill("a", "Money back.", "Ask for the order."), Skill("b", "Money back.", "Two\n\nlines.")],
    ),
    "rules in a body": (document(body=RULES), [Skill("refunds", "Money back.", RULES)]),
    "line ends and a mark of Windows": (
        "\ufeff" + document().replace("\n", "\r\n"),
        [Skill("refunds", "Money back.", "Ask for the order.")],
    ),
    "other keys": (
        "---\n# by us\nName: a\nlicense: MIT\nmetadata:\n  version: 1\nallowed-tools:\n- x\ndescription: b\n---\nc",
        [Skill("a", "b", "c")],
    ),
    "quotes": ("---\nname: 'a'\ndescription: \"When: now\"\n---\nb", [Skill("a", "When: now", "b")]),
    "folded": ("---\nname: a\ndescription: >-\n  one\n\n  two\n---\nb", [Skill("a", "one two", "b")]),
    "plain with a colon": ("---\nname: a\ndescription: when: now\n---\nb", [Skill("a", "when: now", "b")]),
    "a remark between rules": (
        document(body="First.\n---\nNote: only on weekdays.\n---\nSecond."),
        [Skill("refunds", "Money back.", "First.\n---\nNote: only on weekdays.\n---\nSecond.")],
    ),
    "escapes of YAML": ('---\nname: "a"\ndescription: "one\\ttwo \\u00e9"\n---\nb', [Skill("a", "one two é", "b")]),
    "a remark of YAML": ("---\nname: a # ours\ndescription: 'it''s'\n---\nb", [Skill("a", "it's", "b")]),
    "lines of one value": ("---\nname: a\ndescription: one\n  two\n---\nb", [Skill("a", "one two", "b")]),
    "a name like a number": ("---\nname: 007\ndescription: yes\n---\nb", [Skill("007", "yes", "b")]),
    "brackets": ("---\nname: a\ndescription: [draft] Refunds\n---\nb", [Skill("a", "[draft] Refunds", "b")]),
    "a name that is a list": ("---\nname: a\n? [b]\n: [c]\n? {d: e}\n: f\n---\nb", [Skill("a", "", "b")]),
    "brackets alone": ("---\nname: a\ndescription: [draft]\n---\nb", [Skill("a", "[draft]", "b")]),
    "emphasis": ("---\nname: a\ndescription: *When* asked\n---\nb", [Skill("a", "*When* asked", "b")]),
    "quotes and more": ('---\nname: a\ndescription: "Pay" is said\n---\nb', [Skill("a", '"Pay" is said', "b")]),
    "an indent by a tab": ("---\nname: a\ndescription: one\n\ttwo\n---\nb", [Skill("a", "one two", "b")]),
    "none": (" \n", []),
}


@pytest.mark.parametrize(("text", "skills"), READ.values(), ids=READ)
def test_what_is_read(text: str, skills: list[Skill]) -> None:
    assert read_skills(text) == skills


REFUSED = {
    "start.skills": "looks like a variable that does not exist",
    "Ask for the order.": "line 1 stands before the first skill; a skill begins with the lines ---, name: …",
    "---\ndescription: a\n---\nb": "the skill in line 1 has no name",
    document() + "---\nname:\n---\nb": "the skill in line 6 has no name",
    "---\nname: [a]\ndescription: b\nname: c\n---\nb": "the skill in line 1 has two names",
    "---\nname: a\nname: b\n---\nc": "the skill in line 1 has two names",
    document("a") + document("b") + document("a"): "two skills have the name 'a'",
    document(body=" "): "the skill 'refunds' has no text",
    "".join(document(str(number)) for number in range(MAX_SKILLS + 1)): "there are 51 skills, and at most 50",
    document(body="ü" * (MAX_SKILLS_BYTES // 2)): "bytes, and at most 204,800 are allowed",
}


@pytest.mark.parametrize(("text", "problem"), REFUSED.items(), ids=REFUSED.values())
def test_what_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidParameters) as refused:
        read_skills(text)

    assert str(refused.value).startswith("parameter 'skills': ")
    assert problem in str(refused.value)


def test_of_read_skills_the_newest_that_fit_are_known() -> None:
    skills = Skills.of("".join(document(name, name * 10) for name in "abcd"), ["a", "gone", "c", "b"])
    skills.look_up({"name": "a"})

    assert list(skills.read) == ["c", "b", "a"]
    assert [skill.name for skill in skills.known(20, len)] == ["a", "b"]
    assert [skill.name for skill in skills.known(9, len)] == []
