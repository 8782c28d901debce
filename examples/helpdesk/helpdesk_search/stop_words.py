"""Words that say nothing about what a person looks for. In: folded words. Out: whether to leave them out."""

import re

_WORDS = (
    "a about after again all am an and another any anything are as at be because been before being but by can cannot"
    " could did do does doing done for from get got had has have having help here how i if in into is it its just let"
    " like may me might mine much must my need no not now of on one only or our out please shall should so some someone"
    " something tell than that the their them then there these they this those to too up us use used using want wants"
    " was we were what when where which while who whom whose why will with would you your"
    " can't couldn't didn't doesn't don't hasn't haven't i'm i've isn't it's that's what's where's won't"
)
_ENGLISH = frozenset(_WORDS.split())
# Particles, endings and questions, of which a run of hiragana may consist.
_HIRAGANA = re.compile(
    "(?:です|ます|ません|ました|でした|ない|する|した|して|します|しない|したい|すれば|しています|ください|下さい|できる|できない"
    "|できます|できません|どう|どの|どこ|どれ|どんな|いつ|なぜ|なに|だれ|いい|よい|いる|いない|ある|あり|なり|なる|こと|とき|もの|ため"
    "|これ|それ|この|その|について|から|まで|より|たら|れば|ので|のに|[のはがをにへともでやかなねよ])+"
)
_JAPANESE = frozenset(("方法", "場合", "時", "何", "事"))


def says_nothing(word: str) -> bool:
    return word.replace("’", "'") in _ENGLISH or word in _JAPANESE or _HIRAGANA.fullmatch(word) is not None
