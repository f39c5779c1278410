"""Whatever is replaced is restored: own attributes, inherited and missing ones, entries, variables and modules."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any

import pytest

from irscope.record.triton.patches import Patches, environment_variable, replaced, replaced_item


class Base:
    inherited = "inherited"

    @staticmethod
    def static() -> str:
        return "static"


class Owner(Base):
    pass


@pytest.mark.parametrize("name", ["inherited", "missing", "static", "method"])
@pytest.mark.parametrize("raises", [False, True])
def test_an_attribute_comes_back_as_it_was(name: str, raises: bool) -> None:
    owners: tuple[Any, ...] = (Base, Owner, Owner())
    for owner in owners:
        before = dict(vars(owner))
        try:
            with replaced(owner, name, "replaced"), replaced(owner, name, "twice"):
                assert getattr(owner, name) == "twice"
                if raises:
                    raise KeyError(name)
        except KeyError:
            assert raises
        assert dict(vars(owner)) == before


def test_entries_and_variables_come_back() -> None:
    rows = {"there": 1}
    with replaced_item(rows, "there", 2), replaced_item(rows, "missing", 3):
        assert rows == {"there": 2, "missing": 3}
    assert rows == {"there": 1}
    before = dict(os.environ)
    with environment_variable("IRSCOPE_TEST", "1"), environment_variable("PATH", ""):
        assert (os.environ["IRSCOPE_TEST"], os.environ["PATH"]) == ("1", "")
    assert dict(os.environ) == before


def test_a_module_stays_where_the_real_one_has_taken_its_place() -> None:
    name = "irscope_test_module"
    with Patches() as patches:
        patches.set_module(ModuleType(name))
        assert name in sys.modules
    assert name not in sys.modules
    real = ModuleType(name)
    with Patches() as patches:
        patches.set_module(ModuleType(name))
        sys.modules[name] = real
    assert sys.modules.pop(name) is real


def test_only_known_attributes_are_replaced() -> None:
    patches = Patches()
    patches.set_known(Owner, {"inherited": "replaced", "missing": "replaced"})
    assert Owner.inherited == "replaced"
    assert not hasattr(Owner, "missing")
    patches.close()
    patches.close()
    assert Owner.inherited == "inherited"
