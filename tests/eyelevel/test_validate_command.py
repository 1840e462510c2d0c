"""`eyelevel validate` draws what it saw of protocols, and nothing of networks."""

import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from analysis.figures import order_of_service, style, window_after_loss
from dataset.observations import LOSS_RESPONSE, ORDER_OF_SERVICE
from eyelevel.commands import validate


def test_each_kind_of_observation_is_drawn_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, object] = {}
    for module, what in ((window_after_loss, LOSS_RESPONSE), (order_of_service, ORDER_OF_SERVICE)):
        monkeypatch.setattr(module, "draw", lambda documents, what=what: drawn.setdefault(what, documents) and Figure())
    monkeypatch.setattr(style, "save", lambda figure, into, name: (into / f"{name}.png").touch())
    seen = {"tcp": {LOSS_RESPONSE: {"a": 1}, ORDER_OF_SERVICE: {"b": 2}}, "quic": {LOSS_RESPONSE: {"c": 3}}, "lte": {}}
    lines = list(validate.draw_figures(seen, tmp_path / "new"))
    assert drawn == {LOSS_RESPONSE: {"tcp": {"a": 1}, "quic": {"c": 3}}, ORDER_OF_SERVICE: {"tcp": {"b": 2}}}
    assert [Path(line.split(": ")[1]).name for line in lines] == ["window-after-loss.png", "order-of-service.png"]
    assert all(Path(line.split(": ")[1]).exists() for line in lines)


def test_what_draws_is_not_loaded_for_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "analysis.figures", None)  # importing it fails
    assert list(validate.draw_figures({"lte": {"measurement": {}}}, tmp_path / "new")) == []
    assert not (tmp_path / "new").exists()
