"""What tests of experiments share."""

import pytest


@pytest.fixture
def interpreted(monkeypatch):
    """Functions of hyppo as they are written: compiling those few takes half a minute."""
    from hyppo.independence import dcorr, hsic

    for module in (dcorr, hsic):
        for name, function in list(vars(module).items()):
            if hasattr(function, "py_func"):
                monkeypatch.setattr(module, name, function.py_func)
