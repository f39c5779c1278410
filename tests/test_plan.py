"""Plans: text forms, matching, and errors that name the nearest pass."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.errors import PlanError
from irscope.model.capture import PassSnapshot
from irscope.plan import PassPlan, PassRule

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,12}", fullmatch=True) | st.just("*")
stages = st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True)
rules = st.builds(PassRule, names, st.none() | stages, st.none() | st.integers(1, 99))
kept = st.builds(PassRule, names, stages, st.none() | st.integers(1, 99))
plans = st.builds(PassPlan, st.lists(rules, max_size=4).map(tuple), st.lists(kept, max_size=3).map(tuple))


def snapshot(stage: str, name: str, occurrence: int = 1, argument: str = "") -> PassSnapshot:
    return PassSnapshot(0, stage, name, occurrence, argument)


@given(rules)
def test_a_rule_is_its_text(rule: PassRule) -> None:
    assert PassRule.parse(str(rule)) == rule


@given(plans)
def test_a_plan_is_its_text(plan: PassPlan) -> None:
    assert PassPlan.parse(str(plan)) == plan


@given(st.text(max_size=20))
def test_any_text_is_a_rule_or_a_plan_error(text: str) -> None:
    try:
        rule = PassRule.parse(text)
    except PlanError:
        return
    assert PassRule.parse(str(rule)) == rule


@pytest.mark.parametrize(
    ("rule", "matches"),
    [
        ("combine", True),
        ("triton-combine", True),
        ("triton_combine", True),
        ("TRITON-COMBINE", True),
        ("ttir:combine", True),
        ("ttgir:combine", False),
        ("combine#1", True),
        ("combine#2", False),
        ("ttir:*", True),
        ("llir:*", False),
        ("comb", False),
    ],
)
def test_either_name_is_accepted(rule: str, matches: bool) -> None:
    assert PassRule.parse(rule).matches(snapshot("ttir", "combine", 1, "triton-combine")) is matches


def test_only_switches_the_others_of_its_stage_off() -> None:
    plan = PassPlan.parse("+ttgir:coalesce")
    assert plan.skips(snapshot("ttgir", "pipeline"))
    assert not plan.skips(snapshot("ttgir", "coalesce"))
    assert not plan.skips(snapshot("ttir", "combine"))


def test_off_wins_over_only() -> None:
    assert PassPlan.parse("-coalesce +ttgir:coalesce").skips(snapshot("ttgir", "coalesce"))


def test_comments_and_lines() -> None:
    plan = PassPlan.parse("# what the layouts cost\n-ttgir:coalesce\n\n-pipeline#1 +llir:cse\n")
    assert str(plan) == "-ttgir:coalesce -pipeline#1 +llir:cse"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("combine", "must begin with '-'"),
        ("-combine#0", "'combine#0' is not a pass"),
        ("-a b", "line 1 of the plan: 'b'"),
        ("+combine", "must name its stage"),
        ("-ttgir:", "is not a pass"),
    ],
)
def test_wrong_plans_say_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(PlanError, match=said.replace("(", r"\(")):
        PassPlan.parse(text)


def test_a_rule_that_matches_nothing_names_the_nearest() -> None:
    pipeline = [
        snapshot("ttgir", "coalesce"),
        snapshot("ttgir", "canonicalizer"),
        snapshot("ttgir", "canonicalizer", 2),
    ]
    with pytest.raises(PlanError, match=r"no pass is named 'colesce'\. Did you mean 'coalesce'\?"):
        PassPlan.parse("-colesce").check(pipeline)
    with pytest.raises(
        PlanError, match=r"no pass is named 'canonicalizer#3'\. The pipeline has canonicalizer, 2 in ttgir"
    ):
        PassPlan.parse("-canonicalizer#3").check(pipeline)
    PassPlan.parse("-canonicalizer#2").check(pipeline)


def test_a_rule_that_is_named_twice_is_one() -> None:
    assert str(PassPlan.parse("-combine -coalesce -combine +ttgir:cse +ttgir:cse")) == "-combine -coalesce +ttgir:cse"
