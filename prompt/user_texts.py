"""All texts that the agent itself writes for users, by language: English, Japanese, Chinese, Portuguese.

``internal/text/language.py`` chooses the language.
"""

# The user reads these if thoughts are shown: for a round in which the model calls tools without a text, above a plan,
# and above the findings of its subtasks.
TOOLS_USED = {
    "en": "Used {tools}.",
    "ja": "{tools} を使用しました。",
    "zh": "使用了 {tools}。",
    "pt": "Ferramentas usadas: {tools}.",
}
MORE_TOOLS_USED = {
    "en": "Used {tools} and {more} more.",
    "ja": "{tools} ほか {more} 件のツールを使用しました。",
    "zh": "使用了 {tools} 和另外 {more} 个工具。",
    "pt": "Ferramentas usadas: {tools} e mais {more}.",
}
PLAN_HEADING = {"en": "Plan:", "ja": "計画:", "zh": "计划：", "pt": "Plano:"}
FINDINGS_HEADING = {
    "en": "What the subtasks found:",
    "ja": "サブタスクの結果:",
    "zh": "各子任务的结果：",
    "pt": "Resultados das subtarefas:",
}
NAME_SEPARATOR = {"en": ", ", "ja": "、", "zh": "、", "pt": ", "}

# The user reads one of these below an answer that ends in the middle. The first key is the reason.
CUT_SHORT = {
    "length": {
        "en": "(The answer stops here: it reached the length limit.)",
        "ja": "（回答はここで途切れています。長さの上限に達しました。）",
        "zh": "（回答在此中断：已达到长度上限。）",
        "pt": "(A resposta foi interrompida aqui: atingiu o limite de tamanho.)",
    },
    "time_limit": {
        "en": "(The answer stops here: the time limit was reached.)",
        "ja": "（回答はここで途切れています。制限時間に達しました。）",
        "zh": "（回答在此中断：已达到时间上限。）",
        "pt": "(A resposta foi interrompida aqui: o tempo acabou.)",
    },
    "size_limit": {
        "en": "(The answer stops here: it is too long for one run.)",
        "ja": "（回答はここで途切れています。1 回の実行で扱える長さを超えました。）",
        "zh": "（回答在此中断：超出了一次运行可处理的长度。）",
        "pt": "(A resposta foi interrompida aqui: é longa demais para uma execução.)",
    },
    "content_filter": {
        "en": "(The answer stops here: the provider's content filter stopped it.)",
        "ja": "（回答はここで途切れています。プロバイダーのコンテンツフィルターにより停止されました。）",
        "zh": "（回答在此中断：被供应商的内容过滤器终止。）",
        "pt": "(A resposta foi interrompida aqui pelo filtro de conteúdo do provedor.)",
    },
}

# This line ends the visible text if the run ends with an error, because Dify then shows no default value.
FAILED_AFTER_TEXT = {
    "en": "(An error ended the run here.)",
    "ja": "（エラーが発生したため、ここで終了しました。）",
    "zh": "（运行因错误在此中断。）",
    "pt": "(A execução terminou aqui devido a um erro.)",
}

# This heading stands above the sources that the answer cites.
SOURCES_HEADING = {"en": "**Sources**", "ja": "**出典**", "zh": "**来源**", "pt": "**Fontes**"}

# The user reads these when calls wait for approval: for one call and for several. The quoted word counts as approval.
APPROVAL_REQUEST = {
    "en": "I need your approval before I do this:",
    "ja": "次の操作を行う前に、承認をお願いします。",
    "zh": "执行以下操作之前，需要您的批准：",
    "pt": "Preciso da sua aprovação antes de fazer isto:",
}
APPROVAL_REQUEST_FOR_SEVERAL = {
    "en": "I need your approval before I do these {count} things:",
    "ja": "次の {count} 件の操作を行う前に、承認をお願いします。",
    "zh": "执行以下 {count} 项操作之前，需要您的批准：",
    "pt": "Preciso da sua aprovação antes de fazer estas {count} ações:",
}
HOW_TO_APPROVE = {
    "en": 'Answer "yes" to approve, or say what should be different.',
    "ja": "承認する場合は「はい」とお答えください。そうでない場合は、変更したい点をお書きください。",
    "zh": "如需批准，请回复“可以”；否则请说明需要怎样修改。",
    "pt": 'Responda "sim" para aprovar ou diga o que deve mudar.',
}
HOW_TO_APPROVE_SEVERAL = {
    "en": 'Answer "yes" to approve all of them, or say what should be different. '
    "To decide on each one, answer in JSON: ",
    "ja": "すべて承認する場合は「はい」とお答えください。そうでない場合は、変更したい点をお書きください。"
    "1 件ずつ決める場合は、JSON でお答えください: ",
    "zh": "如需全部批准，请回复“可以”；否则请说明需要怎样修改。如需逐项决定，请用 JSON 回复：",
    "pt": 'Responda "sim" para aprovar todas ou diga o que deve mudar. Para decidir sobre cada uma, responda em JSON: ',
}
EMPTY_TEXT = {"en": "(empty text)", "ja": "（空の文字列）", "zh": "（空文本）", "pt": "(texto vazio)"}
# This remark follows an imitation of a question for approval in the model's text, in the language of the imitation.
NOT_THE_QUESTION = {
    "en": "(the model wrote this: it is not what you approve)",
    "ja": "（これはモデルの文章で、承認の対象ではありません）",
    "zh": "（这是模型写的文字，不是您要批准的内容）",
    "pt": "(o modelo escreveu isto: não é o que você aprova)",
}
WITHOUT_ARGUMENTS = {"en": "(no arguments)", "ja": "（引数なし）", "zh": "（无参数）", "pt": "(sem argumentos)"}
REFERENCE_OF_CALL = {
    "en": "{reference} of {tool}, {length} characters",
    "ja": "{tool} の結果 {reference}、{length} 文字",
    "zh": "{tool} 的结果 {reference}，{length} 个字符",
    "pt": "{reference} de {tool}, {length} caracteres",
}
SUBTASK_OF_CALL = {"en": "Subtask: ", "ja": "サブタスク: ", "zh": "子任务：", "pt": "Subtarefa: "}

# The user reads this when a tool returns the answer and its result has no text.
TOOL_SAID_NOTHING = {
    "en": "Done ({tools}). There is nothing else to report.",
    "ja": "完了しました（{tools}）。ほかにお伝えする内容はありません。",
    "zh": "已完成（{tools}），没有其他需要说明的内容。",
    "pt": "Concluído ({tools}). Não há mais nada a informar.",
}

# The user reads this when the model fails after a call that the user had approved.
MODEL_FAILED_AFTERWARDS = {
    "en": "The model failed after your approval ({calls}): {failure}",
    "ja": "ご承認いただいた後、モデルでエラーが発生しました（{calls}）: {failure}",
    "zh": "在您批准之后，模型出错（{calls}）：{failure}",
    "pt": "O modelo falhou depois da sua aprovação ({calls}): {failure}",
}
CALL_STATUS = {
    "en": {"ok": "done", "error": "failed", "refused": "not run"},
    "ja": {"ok": "完了", "error": "失敗", "refused": "未実行"},
    "zh": {"ok": "已完成", "error": "失败", "refused": "未执行"},
    "pt": {"ok": "concluída", "error": "falhou", "refused": "não executada"},
}

# The user reads one of these when a run ends without a text from the model. The first key is the stop reason.
NO_ANSWER = {
    "iteration_limit": {
        "en": "I could not finish an answer within the allowed number of tool rounds.",
        "ja": "ツールを使えるラウンド数の上限までに、回答をまとめられませんでした。",
        "zh": "在允许的工具调用轮数内，我未能得出答案。",
        "pt": "Não consegui concluir uma resposta dentro do número permitido de rodadas de ferramentas.",
    },
    "time_limit": {
        "en": "I could not finish an answer within the allowed time.",
        "ja": "制限時間内に回答をまとめられませんでした。",
        "zh": "在允许的时间内，我未能得出答案。",
        "pt": "Não consegui concluir uma resposta dentro do tempo permitido.",
    },
    "token_limit": {
        "en": "I could not finish an answer within the allowed number of tokens.",
        "ja": "トークン数の上限までに、回答をまとめられませんでした。",
        "zh": "在允许的 token 数量内，我未能得出答案。",
        "pt": "Não consegui concluir uma resposta dentro do número permitido de tokens.",
    },
    "call_limit": {
        "en": "I could not finish an answer within the allowed number of tool calls.",
        "ja": "ツール呼び出し回数の上限までに、回答をまとめられませんでした。",
        "zh": "在允许的工具调用次数内，我未能得出答案。",
        "pt": "Não consegui concluir uma resposta dentro do número permitido de chamadas de ferramentas.",
    },
    "size_limit": {
        "en": "I could not finish an answer: the model or its tools produced more than one run can keep.",
        "ja": "モデルまたはツールの出力が 1 回の実行で保持できる量を超えたため、回答をまとめられませんでした。",
        "zh": "模型或工具的输出超出了一次运行可保留的量，我未能得出答案。",
        "pt": "Não consegui concluir uma resposta: o modelo ou as ferramentas produziram mais do que cabe em uma "
        "execução.",
    },
    "approval_required": {
        "en": "I need your approval before I go on.",
        "ja": "先に進むには承認が必要です。",
        "zh": "继续之前需要您的批准。",
        "pt": "Preciso da sua aprovação para continuar.",
    },
    "model_failed": {
        "en": "The model failed before it could answer.",
        "ja": "モデルでエラーが発生し、回答できませんでした。",
        "zh": "模型出错，未能作答。",
        "pt": "O modelo falhou antes de conseguir responder.",
    },
    "repeated_calls": {
        "en": "I stopped because the same tool call kept giving the same result and did not lead to an answer.",
        "ja": "同じツール呼び出しが同じ結果を返し続け、回答に至らなかったため、停止しました。",
        "zh": "同一个工具调用反复得到相同的结果，无法得出答案，因此我停止了运行。",
        "pt": "Parei porque a mesma chamada de ferramenta dava sempre o mesmo resultado e não levava a uma resposta.",
    },
    "unparsed_call": {
        "en": "The model wrote its tool calls in a form that cannot be run, so there is no answer.",
        "ja": "モデルがツール呼び出しを実行できない形式で書いたため、回答できませんでした。",
        "zh": "模型写出的工具调用格式有误，无法执行，因此未能得出答案。",
        "pt": "O modelo escreveu as chamadas de ferramentas em um formato que não pode ser executado; por isso, não há "
        "resposta.",
    },
    "length": {
        "en": "The model used up its output limit before it reached an answer; a larger max_tokens or less "
        "reasoning effort would help.",
        "ja": "モデルが出力上限に達し、回答に至りませんでした。max_tokens を増やすか、推論の強度を下げてください。",
        "zh": "模型在给出答案之前已用尽输出上限；请调大 max_tokens 或降低推理强度。",
        "pt": "O modelo atingiu o limite de saída antes de chegar a uma resposta; aumente max_tokens ou reduza o "
        "esforço de raciocínio.",
    },
    "content_filter": {
        "en": "The model's content filter stopped the answer.",
        "ja": "モデルのコンテンツフィルターにより回答が停止されました。",
        "zh": "模型的内容过滤器中止了回答。",
        "pt": "O filtro de conteúdo do modelo interrompeu a resposta.",
    },
    "answer_invalid": {
        "en": "The model did not give its answer in the required form.",
        "ja": "モデルは指定された形式で回答を返しませんでした。",
        "zh": "模型未按要求的格式给出答案。",
        "pt": "O modelo não deu a resposta no formato exigido.",
    },
    "empty": {
        "en": "The model returned no answer. A content filter may have stopped it; asking in other words may help.",
        "ja": "モデルから回答が返されませんでした。コンテンツフィルターにより停止された可能性があります。"
        "別の表現でお試しください。",
        "zh": "模型未返回任何回答，可能是被内容过滤器拦截了；换一种说法也许有帮助。",
        "pt": "O modelo não retornou nenhuma resposta. Um filtro de conteúdo pode tê-la bloqueado; tente com outras "
        "palavras.",
    },
}
