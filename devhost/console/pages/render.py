"""Renders the templates of this folder, which share the macros of the report's."""

from pathlib import Path

from devhost.comparison import lines
from devhost.evaluation.reports import wording
from devhost.page.environment import page_environment
from devhost.protocol.golang.values import well_formed

HERE = Path(__file__).parent
TEMPLATES, STATIC = HERE / "templates", HERE / "static"
COMPARISON, EVALUATION = Path(lines.__file__).parent, Path(wording.__file__).parent


class Pages:
    def __init__(self) -> None:
        self.environment = page_environment(TEMPLATES, COMPARISON, EVALUATION)
        self.environment.filters.update(is_part=lines.is_part)
        self.environment.globals.update(costs=wording.costs, mark=wording.mark, share=wording.share)

    def render(self, template: str, **values: object) -> str:
        """Without halves of surrogate pairs, which traces and scripts can hold, and UTF-8 cannot."""
        return well_formed(self.environment.get_template(template).render(**values))


def style_sheet() -> str:
    """What the console shares with reports, then its frame, then every other style sheet of its own."""
    shared = page_environment().get_template("shared.css.j2").render()
    frame = STATIC / "console.css"
    others = sorted(file for file in STATIC.glob("*.css") if file != frame)
    files = (COMPARISON / "versus.css", EVALUATION / "evaluation.css", frame, *others)
    return "\n".join([shared, *(file.read_text(encoding="utf-8") for file in files)])
