"""devhost with the agent, the examples and the pages of this repository; devhost/tests tests devhost alone."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HELPDESK = ROOT / "examples" / "helpdesk"
