"""The committed listing of the public API says what the code has."""

import difflib
import sys
from pathlib import Path

import pytest

from toolcrib import Crib
from tools.docs import api_listing

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.requirement("docs.api_listing")


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="other versions write some annotations in other words")
def test_a_change_of_the_public_api_is_seen():
    committed = (ROOT / api_listing.LISTING).read_text(encoding="utf-8").splitlines()

    changed = list(difflib.unified_diff(committed, api_listing.listing().splitlines(), lineterm="", n=0))

    assert changed == [], "if this is meant, run `python -m tools.docs.api_listing` and tell of it in CHANGELOG.md"


def test_a_new_method_and_a_changed_signature_are_in_it(monkeypatch: pytest.MonkeyPatch):
    def refuse(self: Crib, reason: str = "no") -> int:
        """Refuse."""
        raise NotImplementedError

    monkeypatch.setattr(Crib, "refuse", refuse, raising=False)

    assert "toolcrib.Crib.refuse(self: Crib, reason: str = 'no') -> int" in api_listing.listing().splitlines()
