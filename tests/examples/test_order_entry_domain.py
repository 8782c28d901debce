"""Order entry's pure part: spelling, candidates, rules, and the shapes of an order on its way."""

import csv
from datetime import date

import pytest
import yaml
from order_tools.inputs import Draft, DraftLine
from ordering.matching import LEAST, folded, likeness
from ordering.orders import Item, Line, Order, OrderRequest
from ordering.rules import Review, review

from .conftest import ORDER_ENTRY

TODAY = date(2026, 11, 22)
LINE = Line(
    item_code="CP-240", item_name="ホットカップ 240ml 白", quantity=4, unit="case", pack_size="", confidence="high"
)
ORDER = Order(
    customer_number="C-1", customer_name="喫茶みなと", branch="", delivery_date="", note="by telephone", lines=(LINE,)
)
CUP = Item(
    "CP-240", "ホットカップ 240ml 白", "ホットカップ しろ", "Hot cup 240 ml white", "50 cups", ("pack", "case"), 100
)


def reviewed(line: dict[str, object] | None = None, **changes: object) -> Review:
    order = ORDER.model_copy(update={"lines": (LINE.model_copy(update=line or {}),), **changes})
    return review(OrderRequest(3, 1, "ready", order, "key", ""), {CUP.code: CUP}, TODAY)


def found(query: str) -> list[str]:
    """Codes of the catalogue's items, the most likely first."""
    with (ORDER_ENTRY / "catalogue" / "items.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    alike = {
        row["code"]: likeness(query, [row[name] for name in row if "name" in name or name in {"code", "reading"}])
        for row in rows
    }
    return sorted((code for code in alike if alike[code] >= LEAST), key=lambda code: -alike[code])


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("ﾍﾟｰﾊﾟｰﾅﾌﾟｷﾝ", "ペーパーナプキン"),
        ("ペーパーナプキン", "ぺーぱーなぷきん"),
        ("Hot  cup,(240ml)", "hot cup 240ml"),
        ("ゴミ袋　４５Ｌ", "ゴミ袋 45l"),
    ],
)
def test_width_kana_case_and_punctuation_make_no_difference(written: str, same: str) -> None:
    assert folded(written) == folded(same)


@pytest.mark.parametrize(
    ("query", "codes"),
    [
        ("ﾍﾟｰﾊﾟｰﾅﾌﾟｷﾝ", {"NP-200", "NP-210"}),
        ("paper nakpin", {"NP-200", "NP-210"}),
        ("割箸", {"CH-210"}),
        ("ｺﾞﾐ袋", {"TB-045", "TB-090"}),
        ("紙袋", {"BG-L", "BG-M", "BG-S"}),
        ("elephant", set()),
        ("ドライアイス", set()),
        ("、", set()),
    ],
)
def test_an_item_is_found_however_it_is_written(query: str, codes: set[str]) -> None:
    assert set(found(query)) == codes


@pytest.mark.parametrize(("query", "code"), [("hot cop 240", "CP-240"), ("lid 90", "CL-090"), ("ｃｌ080", "CL-080")])
def test_the_most_likely_item_comes_first(query: str, code: str) -> None:
    assert found(query)[0] == code


NULLS = {"branch": None, "delivery_date": None, "note": None, "pack_size": None, "item_code": None}
GIVEN = {
    "branch": "横浜店",
    "delivery_date": "2030-04-01",
    "note": "ring",
    "pack_size": "50 cups",
    "item_code": "CP-240",
}


@pytest.mark.parametrize(("sent", "kept"), [(NULLS, dict.fromkeys(NULLS, "")), (GIVEN, GIVEN)])
def test_what_a_model_sends_becomes_an_order_in_the_stored_shape(sent: dict[str, object], kept: dict[str, str]) -> None:
    def whole(values: dict[str, object]) -> tuple[dict[str, object], dict[str, object]]:
        line = {"item_name": "cups", "quantity": 4, "unit": "case", "confidence": "low"}
        order = {"customer_number": "C-1", "customer_name": "喫茶みなと"}
        return (
            {**order, **{name: values[name] for name in ("branch", "delivery_date", "note")}},
            {**line, **{name: values[name] for name in ("pack_size", "item_code")}},
        )

    order, line = whole(sent)
    stored, stored_line = whole({**kept})
    draft = Draft.model_validate({**order, "order_request_id": None, "status": "incomplete", "lines": [line]})

    assert draft.order.model_dump(mode="json") == {**stored, "lines": [stored_line]}


def test_what_is_approved_is_the_order_with_its_review_in_one_line() -> None:
    order = "Customer C-1, 喫茶みなと; delivery as soon as possible; CP-240 ホットカップ 240ml 白: 4 case."
    guess = "Line 1: 'ホットカップ 240ml 白' is only a guess; ask the customer."

    assert reviewed().to_approve == f"{order} Review: no concerns."
    assert reviewed({"confidence": "low"}).to_approve == f"{order} Review: {guess}"
    assert [reviewed().verdict, reviewed({"confidence": "low"}).verdict] == ["pass", "change"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"line": {"item_code": ""}}, "Line 1: 'ホットカップ 240ml 白' has no item code yet."),
        ({"line": {"item_code": "CP-999"}}, "Line 1: the catalogue has no item CP-999."),
        ({"line": {"item_name": "ホットカップ 360ml 白"}}, "is 'ホットカップ 240ml 白', not 'ホットカップ 360ml 白'."),
        ({"line": {"unit": "piece"}}, "Line 1: CP-240 is sold by pack or case, not by piece."),
        ({"delivery_date": "2026-11-22"}, "The delivery date 2026-11-22 is not after today, 2026-11-22."),
        ({"lines": (LINE, LINE)}, "The item CP-240 stands in 2 lines."),
    ],
)
def test_what_is_wrong_is_named_and_cannot_be_placed(changes: dict[str, object], sentence: str) -> None:
    said = reviewed(**changes)  # type: ignore[arg-type] # of either kind

    (wrong,) = said.wrong
    assert sentence in wrong
    assert not said.can_be_placed


@pytest.mark.parametrize(
    ("line", "doubts"),
    [
        ({"quantity": 101}, ["101 is more than the usual maximum of 100"]),
        ({"confidence": "low"}, ["is only a guess"]),
        ({"item_name": "hot cup 240 ml WHITE"}, []),
        ({"item_name": "ﾎｯﾄｶｯﾌﾟ 240ml 白"}, []),
    ],
)
def test_a_doubt_is_not_a_mistake_and_another_name_is_no_doubt(line: dict[str, object], doubts: list[str]) -> None:
    said = reviewed(line=line)

    assert said.can_be_placed
    assert len(said.doubtful) == len(doubts)
    assert all(doubt in sentence for doubt, sentence in zip(doubts, said.doubtful, strict=True))


def test_the_model_reads_every_field_of_a_draft_in_the_description() -> None:
    """Dify hands no `input_schema` of a plugin's tool on."""
    declared = yaml.safe_load((ORDER_ENTRY / "tools" / "save_order_draft.yaml").read_text(encoding="utf-8"))
    (shown,) = [each for each in declared["parameters"] if each["name"] == "draft"]

    assert "input_schema" not in shown
    assert all(field in shown["llm_description"] for field in [*Draft.model_fields, *DraftLine.model_fields])
