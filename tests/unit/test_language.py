"""The language in which a user reads the agent's own sentences."""

import re
from typing import get_args

import pytest

from internal.text.language import Language, deciding_text, language_of
from prompt import user_texts

IN_PORTUGUESE = """
Onde está meu pedido?
Qual o status do pedido 123?
Quanto custa o frete para Recife?
Como faço para trocar de plano?
Qual é o preço?
Vocês entregam aos sábados?
Quero cancelar minha assinatura
Preciso de ajuda com o login
Esqueci minha senha
Não consigo entrar na minha conta
Oi, tudo bem?
Bom dia! Podem me ajudar?
O aplicativo não abre
Existe desconto para estudantes?
Quando chega minha encomenda?
Me mostre as vendas de ontem
Faça um resumo deste documento
Envie um e-mail para a Ana sobre a reunião
Quais são os requisitos?
Tem nota fiscal?
Posso pagar com cartão?
Qual a previsão do tempo em São Paulo amanhã?
Quem é o responsável pelo projeto?
Por que a sincronização parou?
nao recebi o codigo
voce pode me ajudar?
Compare os dois relatórios
Traduza isto para o inglês
Liste todos os clientes inativos
Crie uma tarefa para revisar o contrato
Explique a diferença entre os planos
Estou com problema na impressora
Atualize o endereço do cliente
Obrigado!
""".strip().splitlines()
"""Short questions as users of a help desk, a shop or an office write them."""

UNDECIDED = """
Aprovar o pagamento do fornecedor
Gere um relatório de vendas
O que significa erro 504?
Por favor, reenvie a fatura
Reembolso do pedido 881
Resuma o texto abaixo
""".strip().splitlines()
"""Portuguese without a common word that other languages lack: the answer is English rather than a guess."""

IN_OTHER_LANGUAGES = """
Where is my order?
Status of order 123?
Do no harm
Summarise this document
Find the invoice of São Paulo office
Email Ana about the meeting
What is a feijão?
Show sales of yesterday
Hi
Order 20 lamps
Sum total revenue as of Q3
Compare A to B
Why did the sync pause?
Send a mail to João, please
SIM card price
dia de los muertos
Translate "bom dia" to English
em dash or en dash?
Restaurants near Rua Augusta
Ser vs estar in Spanish
¿Dónde está mi pedido?
¿Cuánto cuesta el envío a Madrid?
Necesito ayuda con mi cuenta
Olvidé mi contraseña
Quiero cancelar la suscripción
¿Quién es el responsable del proyecto?
Muéstrame las ventas de ayer
Hola, buenos días
¿Tiene factura?
No puedo entrar en mi cuenta
Où est ma commande ?
Combien coûte la livraison ?
J'ai oublié mon mot de passe
Je voudrais annuler mon abonnement
Bonjour, ça va ?
Quel est le prix ?
Ma commande est en retard
Montre les ventes d'hier
Peut-on payer par carte ou par virement ?
Dov'è il mio ordine?
Quanto costa la spedizione?
Ho dimenticato la password
Vorrei annullare l'abbonamento
Qual è il prezzo?
Quando arriva il pacco?
Quali sono i requisiti?
Chi è il responsabile del progetto?
Posso pagare con la carta?
Wo ist meine Bestellung?
Was kostet der Versand?
Um wie viel Uhr beginnt das Meeting?
Ich habe mein Passwort vergessen
Zeige mir die Verkäufe von gestern
Siparişim nerede?
Waar is mijn bestelling?
Hvor er min ordre?
Gdzie jest moje zamówienie?
Unde este comanda mea?
Berapa harga ongkir?
Đơn hàng của tôi ở đâu?
On és la meva comanda?
Var är min beställning?
""".strip().splitlines()
"""Short questions in English and in other languages with the same script, which share many words with Portuguese."""


@pytest.mark.parametrize("question", IN_PORTUGUESE)
def test_common_words_show_that_a_short_question_is_in_portuguese(question: str) -> None:
    assert language_of(question) == "pt"


@pytest.mark.parametrize("question", [*UNDECIDED, *IN_OTHER_LANGUAGES])
def test_a_question_in_another_language_or_without_a_common_word_counts_as_english(question: str) -> None:
    assert language_of(question) == "en"


def test_every_text_for_users_is_there_in_every_language_with_the_same_placeholders() -> None:
    languages = set(get_args(Language.__value__))
    for name, value in vars(user_texts).items():
        if not name.isupper():
            continue
        by_reason = value.values() if languages.isdisjoint(value) else [value]
        for texts in by_reason:
            assert set(texts) == languages, name
            assert all(texts.values()), name
            assert len({placeholders(str(text)) for text in texts.values()}) == 1, name


def placeholders(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\{\w+\}", text))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Send mail to 王小明 about the meeting", "en"),
        ("東京 office: please send the note to Bob tomorrow", "en"),
        ("Greet さくら and her friends for me, please", "en"),
        ("帮我 debug 这个 React 的组件", "zh"),
        ("介绍一下 https://example.com/some/long/path_of_words", "zh"),
        ("https://example.com/some/long/pathを要約して", "ja"),
        ("Pythonのlist comprehensionについて", "ja"),
        ("予約確認", "ja"),
        ("確認訂單", "zh"),
        ("预约确认", "zh"),
        ("👍 123 ?", "en"),
        ("", "en"),
        ("ｶﾌｪ", "ja"),
    ],
)
def test_the_script_of_most_of_a_text_decides(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    "short", ["no", "不要", "駄目", "了解", "ok?", "No, too expensive", "", "👍", '{"call_1_b6574fc3": true}']
)
def test_a_short_answer_keeps_the_language_of_the_conversation(short: str) -> None:
    for question in (
        "ランプを注文してください",
        "请订购一盏灯和一张桌子",
        "Order a lamp for the large hall",
        "Quero uma luminária para o salão",
    ):
        assert deciding_text(["Hello", question, short, short]) == question


@pytest.mark.parametrize(
    ("said", "language"),
    [
        (["ランプを注文してください", "Please answer in English and take the cheaper one"], "en"),
        (["Order a lamp for the large hall", "安い方のランプにしてください"], "ja"),
        (["ランプを注文してください", "配送先住所確認希望"], "ja"),
        (["ランプを注文してください", "请给我看看便宜一点的灯"], "zh"),
        (["👍", "はい"], "ja"),
        (["Quero uma luminária para o salão", "Reembolso do pedido 881 de março, fornecedor Silva"], "pt"),
        (["Quero uma luminária para o salão", "Please answer in English, with the price"], "en"),
        (["Order a lamp for the large hall", "Você pode cancelar o meu pedido?"], "pt"),
    ],
)
def test_a_text_that_says_more_changes_the_language(said: list[str], language: str) -> None:
    assert language_of(deciding_text(said)) == language
