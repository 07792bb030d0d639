"""The list of mutations fits the code: each line stands where it is said, each test exists."""

from __future__ import annotations

import re

import pytest

from tests.mutations import MUTATIONS, Mutation
from tools.run_mutations import PACKAGES, ROOT, mutated_text

PROMISES = {1, 2, 3, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 17}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: f"{m.promise}-{m.line[:30]}")
def test_line_stands_once_and_its_test_exists(mutation: Mutation) -> None:
    text = (PACKAGES / mutation.path).read_text()
    assert mutated_text(mutation, text) != text
    file, _, test = mutation.test.partition("::")
    source = (ROOT / "tests" / "backend" / file).read_text()
    assert re.search(rf"^def {re.escape(test.partition('[')[0])}\(", source, re.M)


def test_every_promise_has_a_mutation() -> None:
    assert {mutation.promise for mutation in MUTATIONS} == PROMISES


def test_line_that_is_gone_is_named() -> None:
    mutation = MUTATIONS[0]
    with pytest.raises(ValueError, match="to stand there once, found 0 times"):
        mutated_text(mutation, "another line\n")
