"""Which tools a search finds by which words, in the scripts of the world."""

import pytest

from internal.node.tool_search import MAX_FOUND, ToolSearch, nearest
from internal.node.tools import build_toolbox
from tests.support.wire import parameter, tool

DESCRIBED = {
    "list_orders": "Lists the orders of a customer.",
    "create_invoice": "Creates an invoice. An order may have several.",
    "issues.getComment": "Reads a comment.",
    "slack-post-message": "Sends a text to a channel.",
    "chumon": "注文の一覧を取得します。",
    "fapiao": "为客户开具发票。",
    "jumun": "주문을 취소합니다.",
    "pedidos": "Cancela a encomenda de um cliente e devolve o preço.",
    "akas": "ตรวจสอบสภาพอากาศของเมือง",
    "mausam": "शहर का मौसम बताता है।",
    "schet": "Выставляет счета клиентам.",
    "long": "order " + "and much else that nobody asked for " * 40,
}
PARAMETERS = {"slack-post-message": [parameter("recipientEmail")]}
SEARCH = ToolSearch(
    build_toolbox(
        tool(name, *PARAMETERS.get(name, ()), description={"human": {}, "llm": text})
        for name, text in DESCRIBED.items()
    )
)


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("order", "list_orders"),
        ("ORDERS of customers", "list_orders"),
        ("invoices", "create_invoice"),
        ("getComment", "issues_getComment"),
        ("get comments", "issues_getComment"),
        ("issues.getComment", "issues_getComment"),
        ("message to a channel", "slack-post-message"),
        ("recipient", "slack-post-message"),
        ("注文を探す", "chumon"),
        ("一覧", "chumon"),
        ("发票", "fapiao"),
        ("ＩＮＶＯＩＣＥ", "create_invoice"),
        ("주문 취소", "jumun"),
        ("preços", "pedidos"),
        ("สภาพอากาศ", "akas"),
        ("मौसम", "mausam"),
        ("счёт счета", "schet"),
    ],
)
def test_the_best_match_comes_first(query: str, best: str) -> None:
    assert SEARCH.best(query)[0].name == best


def test_matches_are_ranked_and_others_are_left_out() -> None:
    assert [found.name for found in SEARCH.best("order")] == ["list_orders", "create_invoice", "long"]
    assert SEARCH.best("") == SEARCH.best("…") == SEARCH.best("xylophone") == []
    assert ToolSearch(build_toolbox([])).best("order") == []


def test_equal_matches_come_in_the_order_of_the_panel() -> None:
    tools = [tool(f"same_{number}", description={"human": {}, "llm": "Same."}) for number in range(20)]

    found = ToolSearch(build_toolbox(tools)).best("same")

    assert [each.name for each in found] == [f"same_{number}" for number in range(MAX_FOUND)]


def test_the_nearest_names_share_most_letters() -> None:
    names = [*DESCRIBED, *(f"x{number}" for number in range(9))]

    assert nearest("List_Order", names)[0] == "list_orders"
    assert nearest("createinvoice", names)[0] == "create_invoice"
    assert len(nearest("nothing", names)) == MAX_FOUND
    assert nearest("", []) == []
