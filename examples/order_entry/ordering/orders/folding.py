"""The spelling under which names are compared: width, kana, case, punctuation and blanks make no difference."""

import unicodedata

_KATAKANA, _HIRAGANA = ord("ァ"), ord("ぁ")
_TO_HIRAGANA = {code: code - _KATAKANA + _HIRAGANA for code in range(_KATAKANA, ord("ヶ") + 1)}
_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−"), "-")


def folded(text: str) -> str:
    """`"ﾍﾟｰﾊﾟｰ(100)NAPKIN"` → `"ぺーぱー 100 napkin"`.

    NFKC makes half-width kana and full-width letters plain, and joins a kana with its sound mark.
    """
    plain = unicodedata.normalize("NFKC", text).translate(_DASHES).casefold().translate(_TO_HIRAGANA)
    spaced = "".join(character if character.isalnum() or character in "-ー" else " " for character in plain)
    return " ".join(spaced.split())
