"""Contrasts of what is drawn on a report, computed in light and dark: WCAG AA, 1.4.11. Those of text are axe's."""

import re
from collections.abc import Mapping

import pytest

from devhost.page.page import HERE

DRAWN = 3.0
STYLE = (HERE / "styles" / "base.css").read_text(encoding="utf-8")


def colours(block: str) -> Mapping[str, str]:
    return dict(re.findall(r"--([-\w]+): (#[0-9a-f]{6})", block))


LIGHT, DARK = map(colours, re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL))
SCHEMES = pytest.mark.parametrize("scheme", [LIGHT, {**LIGHT, **DARK}], ids=["light", "dark"])


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_contrast_of_black_and_white_is_21() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


def test_both_schemes_have_all_colours() -> None:
    assert LIGHT.keys() == DARK.keys()


@SCHEMES
@pytest.mark.parametrize("hue", ["model", "tool", "other", "group", "bad", "link"])
def test_bars_and_the_focus_stand_out_from_the_card(scheme: Mapping[str, str], hue: str) -> None:
    """The waiting part of a model's bar has an outline in the model's colour."""
    assert contrast(scheme[hue], scheme["paper"]) >= DRAWN
