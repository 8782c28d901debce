"""Words and phrases with which a user approves, by language. As a complete answer they mean yes and nothing else.

Phrases that can also mean no, "I understand", "never mind" or "go on writing" are not listed ("fine", "right", "no
problem", "continue", "tudo bem", "結構です", "大丈夫です", "了解です"), nor is anything with a condition. The signs
under ``any`` may also follow a word. A tilde after a word expresses a friendly tone in Chinese and is listed there;
in other languages it may express hesitation. ``internal/memory/approval.py`` compares a text with these words, and
docs/approval.md describes the effect of a user's answer.
"""

_BY_LANGUAGE = {
    "en": """
        yes | y | yeah | yep | yup | yes yes | yes please | yes thanks | yes thank you | yes, do it | yes, please do |
        yes, please do it | yes, please go ahead | yes, please proceed | yes, go ahead | yes, proceed | yes, you may |
        yes, approve | yes, approved | yes, I approve | yes, I agree | yes, I confirm | yes, confirmed |
        yes, of course | yes, sure | yes, ok | yes to all | yes, all | yes, all of them | yes, send it |
        yes, please send it | yeah, sure | yeah, go ahead | ok | o.k. | okay | ok yes | okay yes | ok do it |
        okay do it | ok go ahead | okay go ahead | ok, please go ahead | ok, approved | ok, proceed | ok please |
        okay please | ok thanks | okay thanks | ok thank you | okay thank you | ok, send it | okay, send it | true |
        approve | approve it | approve all | approved | all approved | I approve | I approve it | I approve this |
        I approve all | accept | accepted | I accept | agree | agreed | I agree | allow | allow it | I allow it |
        permission granted | confirm | confirmed | I confirm | go ahead | go for it | please go ahead | please do |
        please do it | please do so | please proceed | proceed | do it | do so | do that | send it | please send it |
        you may | you may proceed | you can go ahead | you can proceed | sure | sure thing | sure, go ahead |
        sure, do it | of course | absolutely | certainly | definitely | by all means | sounds good | looks good |
        looks good to me | lgtm
    """,
    "ja": """
        はい | ハイ | はーい | はい、お願い | はいお願い | はい、お願いします | はいお願いします |
        はい、お願いいたします | はいお願いいたします | はい、お願い致します | はい、よろしくお願いします |
        はい、よろしくお願いいたします | はい、承認します | はい承認します | はい、承認 | はい、許可します |
        はい、同意します | はい、どうぞ | はいどうぞ | はい、実行してください | はい、実行して | はい、進めてください |
        はい、進めて | はい、やってください | はい、やって | はい、そうしてください | はい、それでお願いします |
        はい、いいですよ | はい、OKです | はい、大丈夫です | はい大丈夫です | はい、問題ありません |
        はい、送ってください | はい、送信してください | ええ | ええ、お願いします | ええ、どうぞ | うん | うん、お願い |
        お願い | お願いします | お願いいたします | お願い致します | おねがいします | よろしくお願いします |
        よろしくお願いいたします | よろしくお願い致します | それでお願いします | これでお願いします | 承認 | 承認する |
        承認します | 承認しました | 承認いたします | 承認致します | 承認済み | 承認です | すべて承認 |
        すべて承認します | 全て承認します | 全部承認します | 許可 | 許可する | 許可します | 同意 | 同意する |
        同意します | 了承します | 実行 | 実行する | 実行して | 実行してください | 実行して下さい | 実行をお願いします |
        実行お願いします | 進めて | 進めてください | 進めて下さい | そのまま進めてください | やって | やってください |
        やって下さい | 送ってください | 送信してください | そうしてください | どうぞ | どうぞお願いします | もちろん |
        もちろんです | いいよ | いいですよ | OKです | 問題ありません | オーケー | オーケーです | オッケー |
        オッケーです | オッケイ
    """,
    "zh": """
        是 | 是的 | 是的，请 | 是的，请执行 | 是的，执行 | 是的，同意 | 是的，我同意 | 是的，可以 | 是的，批准 |
        是的，确认 | 好 | 好的 | 好的，可以 | 好的，同意 | 好的，请 | 好的，请执行 | 好的，执行吧 | 好的，没问题 |
        好的，谢谢 | 好的谢谢 | 好的，请发送 | 好啊 | 好呀 | 行 | 可以 | 可以的 | 可以，请执行 | 可以执行 | 都可以 |
        全部可以 | 同意 | 我同意 | 同意执行 | 全部同意 | 都同意 | 同意全部 | 批准 | 我批准 | 已批准 | 批准执行 |
        全部批准 | 审批通过 | 通过 | 准许 | 允许 | 我允许 | 允许执行 | 许可 | 授权 | 授权执行 | 确认 | 我确认 | 已确认 |
        确认执行 | 确定 | 没问题 | 请执行 | 请发送 | 可以发送 | 执行 | 执行吧 | 做吧 | 去做吧 | 请做吧 | 就这么办 |
        就这样做 | 就这么做 | 当然 | 当然可以 | 赞成 | OK的 | 是的，請 | 是的，請執行 | 好的，請執行 | 好的，沒問題 |
        好的，謝謝 | 好的謝謝 | 好的，請發送 | 請發送 | 可以發送 | 可以執行 | 批准執行 | 核准 | 通過 | 審批通過 | 准許 |
        允許 | 我允許 | 許可 | 授權 | 確認 | 我確認 | 確認執行 | 確定 | 沒問題 | 請執行 | 執行 | 執行吧 | 當然 |
        當然可以 | 贊成 | 好~ | 好的~ | 好啊~ | 好呀~ | 行~ | 可以~ | 可以的~ | 是的~ | 没问题~ | 沒問題~ | 当然~ |
        當然~
    """,
    "pt": """
        sim | sim sim | sim, por favor | sim, obrigado | sim, obrigada | sim, pode | sim, pode ser | sim, pode fazer |
        sim, pode prosseguir | sim, pode executar | sim, pode enviar | sim, pode mandar | sim, prossiga | sim, faça |
        sim, faça isso | sim, aprovo | sim, aprovado | sim, autorizo | sim, confirmo | sim, concordo | sim, claro |
        sim, com certeza | sim, todas | sim, todos | sim para todas | sim para todos | pode | pode sim | pode ser |
        pode ser sim | pode prosseguir | pode fazer | pode fazer isso | pode executar | pode enviar | pode mandar |
        pode seguir | pode seguir em frente | pode ir em frente | prosseguir | prossiga | por favor, prossiga |
        prossiga, por favor | por favor, faça | por favor, faça isso | faça | faça isso | vá em frente | va em frente |
        siga em frente | execute | aprovar | aprove | aprovo | eu aprovo | aprovo todas | aprovo todos | aprovado |
        aprovada | aprovados | aprovadas | está aprovado | esta aprovado | está aprovada | tudo aprovado | autorizo |
        eu autorizo | autorizado | autorizada | permito | permitido | aceito | eu aceito | confirmo | eu confirmo |
        confirmar | confirmado | confirmada | concordo | eu concordo | de acordo | estou de acordo | combinado | claro |
        claro que sim | com certeza | certamente | manda ver | ok, pode | ok, pode fazer | ok, pode enviar |
        ok, pode mandar | ok, pode prosseguir | ok, aprovado | ok, prossiga | verdadeiro
    """,
    "any": """
        👍 | 👍🏻 | 👍🏼 | 👍🏽 | 👍🏾 | 👍🏿 | ✅ | 🆗
    """,
}

APPROVAL_WORDS = {
    language: tuple(phrase.strip() for phrase in phrases.split("|")) for language, phrases in _BY_LANGUAGE.items()
}
