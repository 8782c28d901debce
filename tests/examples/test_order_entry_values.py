"""Order entry's pure part: spelling, candidates, transforms, rules; and the schemas that the model is shown."""

import csv
from datetime import date

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ordering.orders.folding import folded
from ordering.orders.matching import candidates
from ordering.orders.payload import ExternalLine, ExternalOrder, LinePayload, OrderPayload
from ordering.orders.rules import Findings, Item, findings
from ordering.orders.transforms import to_external, to_payload
from ordering.services.wording import to_approve
from ordering.values.inputs import Draft, DraftLine
from ordering.values.results import Judgement

from .conftest import ORDER_ENTRY

TODAY = date(2026, 11, 22)
NOTHING_FOUND = Findings((), ())
LINE = LinePayload(
    item_code="CP-240", item_name="ホットカップ 240ml 白", quantity=4, unit="case", pack_size="", confidence="high"
)
PAYLOAD = OrderPayload(
    customer_number="C-1", customer_name="喫茶みなと", branch="", delivery_date="", note="by telephone", lines=(LINE,)
)
CUP = Item(
    "CP-240", "ホットカップ 240ml 白", "ホットカップ しろ", "Hot cup 240 ml white", "50 cups", ("pack", "case"), 100
)


def catalogue() -> list[dict[str, str]]:
    with (ORDER_ENTRY / "catalogue" / "items.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def found(query: str) -> list[str]:
    names = [(row["code"], (row["code"], row["name"], row["reading"], row["english_name"])) for row in catalogue()]
    return [candidate.value for candidate in candidates(query, names, 5)]


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("ﾍﾟｰﾊﾟｰﾅﾌﾟｷﾝ", "ペーパーナプキン"),
        ("ペーパーナプキン", "ぺーぱーなぷきん"),
        ("ＮＰ－２００", "np-200"),
        ("Hot  cup,(240ml)", "hot cup 240ml"),
        ("ゴミ袋　４５Ｌ", "ゴミ袋 45l"),
    ],
)
def test_width_kana_case_and_punctuation_make_no_difference(written: str, same: str) -> None:
    assert folded(written) == folded(same)


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    assert folded(folded(text)) == folded(text)


@pytest.mark.parametrize(
    ("query", "codes"),
    [
        ("ﾍﾟｰﾊﾟｰﾅﾌﾟｷﾝ", {"NP-200", "NP-210"}),
        ("ぺーぱなぷきん", {"NP-200", "NP-210"}),
        ("paper nakpin", {"NP-200", "NP-210"}),
        ("割箸", {"CH-210"}),
        ("わりばし", {"CH-210"}),
        ("手袋 M", {"GL-M"}),
        ("ｺﾞﾐ袋", {"TB-045", "TB-090"}),
        ("紙袋", {"BG-L", "BG-M", "BG-S"}),
        ("elephant", set()),
        ("ドライアイス", set()),
        ("x", set()),
        ("、", set()),
    ],
)
def test_an_item_is_found_however_it_is_written(query: str, codes: set[str]) -> None:
    assert set(found(query)) == codes


@pytest.mark.parametrize(("query", "code"), [("hot cop 240", "CP-240"), ("lid 90", "CL-090"), ("ｃｌ080", "CL-080")])
def test_the_most_likely_item_comes_first(query: str, code: str) -> None:
    assert found(query)[0] == code


def draft(**changes: object) -> Draft:
    line = {
        "item_code": None,
        "item_name": "cups",
        "quantity": 4,
        "unit": "case",
        "pack_size": None,
        "confidence": "low",
    }
    whole = {
        "order_request_id": None,
        "customer_number": "C-1",
        "customer_name": "喫茶みなと",
        "branch": None,
        "delivery_date": None,
        "note": None,
        "status": "incomplete",
        "lines": [line],
    }
    return Draft.model_validate({**whole, **changes})


def test_what_is_null_in_the_input_is_an_empty_text_in_the_payload() -> None:
    line = LinePayload(item_code="", item_name="cups", quantity=4, unit="case", pack_size="", confidence="low")

    assert to_payload(draft()) == OrderPayload(
        customer_number="C-1", customer_name="喫茶みなと", branch="", delivery_date="", note="", lines=(line,)
    )


def test_what_is_given_in_the_input_is_kept_and_a_date_is_iso_8601() -> None:
    line = DraftLine(
        item_code="CP-240", item_name="cups", quantity=1, unit="pack", pack_size="50 cups", confidence="high"
    )
    payload = to_payload(draft(branch="横浜店", delivery_date="2030-04-01", note="ring twice", lines=[line]))

    assert (payload.branch, payload.delivery_date, payload.note) == ("横浜店", "2030-04-01", "ring twice")
    assert payload.lines[0] == LinePayload(**line.model_dump())


def test_the_order_system_gets_none_of_the_internal_fields() -> None:
    external = to_external(PAYLOAD)

    assert external == ExternalOrder(
        customer="C-1",
        branch=None,
        deliver_on=None,
        lines=(ExternalLine(item="CP-240", quantity=4, unit_code="CS"),),
    )
    written = external.model_dump_json()
    assert not [word for word in ("confidence", "telephone", "pack_size", "みなと") if word in written]


def test_what_is_approved_is_the_order_with_its_review_in_one_line() -> None:
    order = "Customer C-1, 喫茶みなと; delivery as soon as possible; CP-240 ホットカップ 240ml 白: 4 case."
    doubt = Findings(wrong=(), doubtful=("Line 1: is only a guess.",))
    change = Judgement(verdict="change", concerns=("Four is half of what was asked.",), confidence="high")

    assert to_approve(PAYLOAD, NOTHING_FOUND, None) == f"{order} Review: no concerns."
    assert to_approve(PAYLOAD, NOTHING_FOUND, change.model_copy(update={"verdict": "pass"})).endswith("no concerns.")
    assert to_approve(PAYLOAD, doubt, change) == f"{order} Review: {doubt.doubtful[0]} {change.concerns[0]}"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"item_code": ""}, "Line 1: 'ホットカップ 240ml 白' has no item code yet."),
        ({"item_code": "CP-999"}, "Line 1: the catalogue has no item CP-999."),
        ({"item_name": "ホットカップ 360ml 白"}, "is 'ホットカップ 240ml 白', not 'ホットカップ 360ml 白'."),
        ({"unit": "piece"}, "Line 1: CP-240 is sold by pack or case, not by piece."),
    ],
)
def test_a_wrong_line_is_named(change: dict[str, str], sentence: str) -> None:
    (wrong,) = findings(PAYLOAD.model_copy(update={"lines": (LINE.model_copy(update=change),)}), items(), TODAY).wrong

    assert sentence in wrong


def test_an_items_other_names_are_right_too() -> None:
    lines = [LINE.model_copy(update={"item_name": name}) for name in ("hot cup 240 ml WHITE", "ﾎｯﾄｶｯﾌﾟ 240ml 白")]

    for line in lines:
        assert findings(PAYLOAD.model_copy(update={"lines": (line,)}), items(), TODAY).all == ()


@pytest.mark.parametrize(
    ("change", "doubt"),
    [({"quantity": 101}, "101 is more than the usual maximum of 100"), ({"confidence": "low"}, "is only a guess")],
)
def test_a_doubt_is_not_a_mistake(change: dict[str, object], doubt: str) -> None:
    said = findings(PAYLOAD.model_copy(update={"lines": (LINE.model_copy(update=change),)}), items(), TODAY)

    assert said.wrong == ()
    assert doubt in said.doubtful[0]


def test_a_day_that_has_come_and_an_item_in_two_lines_are_wrong() -> None:
    said = findings(PAYLOAD.model_copy(update={"delivery_date": "2026-11-22", "lines": (LINE, LINE)}), items(), TODAY)

    assert said.all == (
        "The delivery date 2026-11-22 is not after today, 2026-11-22.",
        "The item CP-240 stands in 2 lines.",
    )


def items() -> dict[str, Item]:
    return {CUP.code: CUP}


def test_the_model_reads_every_field_of_a_draft_in_the_description() -> None:
    """Dify hands no `input_schema` of a plugin's tool on."""
    declared = yaml.safe_load((ORDER_ENTRY / "tools" / "save_order_draft.yaml").read_text(encoding="utf-8"))
    (shown,) = [each for each in declared["parameters"] if each["name"] == "draft"]

    assert "input_schema" not in shown
    assert all(field in shown["llm_description"] for field in [*Draft.model_fields, *DraftLine.model_fields])
