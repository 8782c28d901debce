"""Closed lists of words. A model chooses from them; nothing else is stored."""

from typing import Literal

type Unit = Literal["piece", "pack", "case"]
type DraftStatus = Literal["incomplete", "ready"]
"""Whether something still has to be asked."""
type Confidence = Literal["low", "medium", "high"]
"""How sure the model is that an item is the one that the customer means."""
type OrderStatus = Literal["incomplete", "ready", "requesting", "requested"]
"""Of a stored order request. While it is `requesting`, its content must not change: it may be placed already."""
type Verdict = Literal["pass", "change"]
