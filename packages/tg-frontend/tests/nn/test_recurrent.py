"""`LSTMCell`, against its formulas."""

from __future__ import annotations

import numpy as np
import pytest
from tg_frontend import Tensor, nn


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("bias", [True, False])
def test_two_steps_follow_the_formulas(bias: bool) -> None:
    rng = np.random.default_rng(1)
    layer = nn.LSTMCell(3, 2, bias=bias)
    state = None
    h, c = np.zeros((4, 2)), np.zeros((4, 2))
    for _ in range(2):
        x = rng.uniform(-1, 1, (4, 3)).astype(np.float32)
        state = layer(Tensor(x), state)
        gates = x @ layer.weight_ih.numpy().T + h @ layer.weight_hh.numpy().T
        if bias:
            gates = gates + layer.bias_ih.numpy() + layer.bias_hh.numpy()
        entering, kept, candidate, leaving = np.split(gates, 4, axis=1)
        c = sigmoid(kept) * c + sigmoid(entering) * np.tanh(candidate)
        h = sigmoid(leaving) * np.tanh(c)
    assert state is not None
    np.testing.assert_allclose(state[0].numpy(), h, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state[1].numpy(), c, rtol=1e-5, atol=1e-6)


def test_input_of_another_size_is_refused() -> None:
    with pytest.raises(nn.LayerError, match=r"LSTMCell\(3, 2\).*\(4, 5\)"):
        nn.LSTMCell(3, 2)(Tensor.zeros(4, 5))
