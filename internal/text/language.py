"""Chooses the language of the agent's own sentences from the user's texts.

The script decides between Japanese, Chinese and other languages. English and Portuguese share a script, so common words
decide between them. English is the default.
"""

import contextlib
import re
from collections.abc import Iterable
from typing import Literal

from internal.clock import in_turns

type Language = Literal["en", "ja", "zh", "pt"]

_KANA = re.compile(r"[\u3041-\u30ff\uff66-\uff9f]")
_HAN = re.compile(r"[\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_WORD = re.compile(r"[^\W\d_]+")
_ASCII = re.compile(r"[!-~]+")
_IDENTIFIER = re.compile(r"://|@|_|\w[.]\w")
"""A mark of an address, a file or a name in code, which may occur in a text of any language."""
_JAPANESE_WORDS = re.compile(r"予[定想算約防備報測選]|払|込|駄目")
"""Parts of Japanese words that Chinese writes differently, although its character sets have the characters."""
_WEIGHT = 3
"""Weight of a Japanese or Chinese character, in letters of an alphabet."""
_MAX_WORD_WEIGHT = 4
"""Maximum weight of a word in an alphabet, because long technical terms occur in texts of every language."""
_SHORT = 15
"""Weight of a short answer such as "no, too expensive"."""
_MAX_LENGTH_READ = 10_000
"""Number of characters of a text that are examined."""


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_PORTUGUESE = _words(
    """
    agora amanhã ao aos apenas até cadê com contigo comigo cujo dá daí dele deles dela delas depois desde desse desta
    deste devo dia duas ela elas ele eles em então essa essas esse estamos estão estava estou eu existe existem faça
    faço falar fazer ficou fiz foi foram fosse gostaria há havia hoje isso isto já lá lhe mais mas meu meus minha
    minhas muito muita muitos muitas nao não nem nenhum nenhuma nossa nossas nosso nossos numa oi olá onde ontem ou
    outra outro pela pelas pelo pelos pode podem poderia posso pra pro quais qual quando quanta quantas quanto quantos
    quem quero são sem os sendo ser será seu seus sobre só sou sua suas também tem têm tenho teve tudo tua uma umas
    vai vamos você voce vocês voces vou às à é obrigado obrigada
    """
)
"""Common Portuguese words that do not occur in English texts."""
_PORTUGUESE_ENDING = re.compile(r"\wç(?:ão|ões|a|o)$|[ãõ]es$|\wã$|lho$|nha$")
_OTHER_LANGUAGES = _words(
    """
    about an and any are be can could did does for from get give has have how i if in is it list my not of on
    or please show tell that the this to want was we what when where which who why will with would you your
    al algo cada cómo cuál cuáles cuando cuándo cuánto cuántos cuántas del donde dónde el ella ellos en es está
    están estoy hasta hay hoy la las los lo muy necesito ni nosotros pero puede puedes puedo qué
    quién quiero si sí su sus también tengo tiene tu un una usted y ya yo
    au aux avec ce cette comme dans des du elle est et il je le les leur ma mais mes mon ne nous où pas pour quand
    quel quelle qui sa ses son sont sur une vous
    che chi ci come cosa cui dal dalla degli dei del della delle di dove gli ha hai ho mi mia mio nel nella non per
    perché più quali questa questo sono stato suo tra tutti vorrei è
    aber als am auf aus bei bin bitte dem den der die ein eine es für hat ich ihr im ist kann können man mein mit
    nach nicht noch oder sein sich sie sind und uns von war warum was wenn wer wie wird wir wo zu zum zur
    """
)
"""Common words of English, Spanish, French, Italian and German, except those that are also Portuguese."""


def language_of(text: str) -> Language:
    """Return the language of the agent's own sentences for a user who wrote this text; ``en`` if it is not clear.

    A text is Japanese or Chinese if most of it is in their characters. Such a text is Japanese if it has kana, a
    Japanese word, or characters that no Chinese character set has. A text is Portuguese if it has more common
    Portuguese words than common words of the other languages in its script.
    """
    text = text[:_MAX_LENGTH_READ]
    east_asian, others = _weights(text)
    if east_asian <= others:
        if _is_portuguese(text):
            return "pt"
        return "en"
    sets = _sets_that_write(text)
    in_kanji = sets == ["shift_jis"] or ("shift_jis" in sets and _JAPANESE_WORDS.search(text) is not None)
    if in_kanji or _KANA.search(text):
        return "ja"
    return "zh"


def _is_portuguese(text: str) -> bool:
    portuguese, others = _common_words(text)
    return portuguese > others


def _common_words(text: str) -> tuple[int, int]:
    """Return how many words of a text are common in Portuguese, and in the other languages of its script."""
    words = [word.lower() for word in _WORD.findall(_without_identifiers(text))]
    portuguese = sum(word in _PORTUGUESE or _PORTUGUESE_ENDING.search(word) is not None for word in words)
    others = sum(word in _OTHER_LANGUAGES for word in words)
    return portuguese, others


def _sets_that_write(text: str) -> list[str]:
    """Return the Japanese and Chinese character sets that contain all Chinese characters of a text."""
    han = "".join(_HAN.findall(text))
    able = list[str]()
    for name in ("shift_jis", "gb2312", "big5"):
        with contextlib.suppress(UnicodeEncodeError):
            han.encode(name)
            able.append(name)
    return able


def deciding_text(texts: Iterable[str]) -> str:
    """Return the user's text that decides the language of the conversation. ``texts`` are ordered, the oldest first.

    The newest text decides, unless it is short and an earlier text is longer: "no" and "不要" may belong to a Japanese
    conversation. An ambiguous text does not decide, either: a text in characters that Japanese and Chinese share, or a
    text without any common word in a Portuguese conversation.
    """
    decides = ""
    weight = 0
    for text in in_turns(texts):
        own = sum(_weights(text))
        if own > min(_SHORT, 2 * weight) and not _may_be_in(language_of(decides), text):
            decides = text
            weight = own
    return decides


def _may_be_in(language: Language, text: str) -> bool:
    """Return whether a text that seems to be in another language may be in this one."""
    text = text[:_MAX_LENGTH_READ]
    match language, language_of(text):
        case "ja", "zh":
            return "shift_jis" in _sets_that_write(text)
        case "pt", "en":
            return _common_words(text) == (0, 0)
        case _:
            return False


def _weights(text: str) -> tuple[int, int]:
    """Return the weight of a text's Japanese and Chinese characters, and the weight of its other words."""
    words = _without_identifiers(text[:_MAX_LENGTH_READ])
    words, kana = _KANA.subn(" ", words)
    words, han = _HAN.subn(" ", words)
    return _WEIGHT * (kana + han), sum(min(len(word), _MAX_WORD_WEIGHT) for word in _WORD.findall(words))


def _without_identifiers(text: str) -> str:
    return _ASCII.sub(lambda run: " " if _IDENTIFIER.search(run[0]) else run[0], text)
