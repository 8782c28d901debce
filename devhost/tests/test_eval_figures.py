"""Intervals of shares and means, against values of the literature."""

import pytest

from devhost.evaluation.figures import (
    Mean,
    Share,
    mean_difference,
    paired_correlation,
    share_difference,
    t_value,
)


@pytest.mark.parametrize(
    ("passed", "count", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilsons_interval_is_that_of_newcombe_1998_table_1(passed: int, count: int, low: float, high: float) -> None:
    interval = Share(passed, count).interval
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("before", "after", "low", "high"),
    [
        (Share(48, 80), Share(56, 70), 0.0524, 0.3339),
        (Share(3, 10), Share(9, 10), 0.1705, 0.8090),
        (Share(0, 10), Share(10, 10), 0.6075, 1.0),
    ],
)
def test_a_difference_of_shares_is_that_of_newcombe_1998_method_10(
    before: Share, after: Share, low: float, high: float
) -> None:
    interval = share_difference(before, after)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=5e-5)


def test_the_same_cases_before_and_after_show_what_two_samples_would_not() -> None:
    pairs = [(True, True)] * 80 + [(False, False)] * 12 + [(False, True)] * 8
    before = Share(80, 100)
    after = Share(88, 100)
    assert share_difference(before, after).verdict == "same"
    assert share_difference(before, after, paired_correlation(pairs)).verdict == "more"
    assert share_difference(after, before, paired_correlation([pair[::-1] for pair in pairs])).verdict == "less"


def test_a_side_that_is_constant_has_no_correlation() -> None:
    assert paired_correlation([(True, True), (True, False)]) == 0.0


def test_one_run_on_each_side_says_nothing_and_two_that_agree_do() -> None:
    assert share_difference(Share(0, 1), Share(1, 1)).verdict == "same"
    assert share_difference(Share(0, 2), Share(2, 2)).verdict == "more"


def test_a_mean_has_a_t_interval_and_one_value_has_none() -> None:
    mean = Mean.of([1.0, 2.0, 3.0, 4.0])
    assert mean.error == pytest.approx(0.6455, abs=5e-5)
    assert mean.interval is not None
    assert (mean.interval.low, mean.interval.high) == pytest.approx((0.4460, 4.5540), abs=5e-4)
    assert Mean.of([7.0]).interval is None


@pytest.mark.parametrize(("degrees", "value"), [(1, 12.706), (30, 2.042), (39, 2.042), (40, 2.021), (4_999, 1.980)])
def test_between_two_rows_of_the_table_the_wider_interval_counts(degrees: int, value: float) -> None:
    assert t_value(degrees) == value


@pytest.mark.parametrize(
    ("pairs", "verdict"),
    [
        ([(1.0, 2.0), (1.0, 2.1), (3.0, 4.0)], "more"),
        ([(2.0, 1.0), (2.1, 1.0), (4.0, 3.0)], "less"),
        ([(1.0, 5.0), (5.0, 1.0), (3.0, 4.0)], "same"),
        ([(1.0, 2.0)], "same"),
        ([], "same"),
    ],
)
def test_means_differ_only_beyond_the_interval_of_the_differences(
    pairs: list[tuple[float, float]], verdict: str
) -> None:
    assert mean_difference(pairs) == verdict
