"""Units and transformations point by point in numpy, from their equations."""

from __future__ import annotations

import numpy as np


def linear(layer, x):
    """W x + b of a layer of equinox."""
    y = np.asarray(layer.weight, np.float64) @ x
    return y if layer.bias is None else y + np.asarray(layer.bias, np.float64)


def sru(unit, points):
    """Outputs of a statistical recurrent unit after each point (004, eq. 7.5-7.8)."""
    f = {"relu": lambda t: np.maximum(t, 0), "tanh": np.tanh}[unit.activation]
    averages = {alpha: np.zeros(unit.n_stats) for alpha in unit.scales}
    outputs = []
    for x in np.asarray(points, np.float64):
        inner = linear(unit.of_point, x)
        if unit.recurrent is not None:
            mu = np.concatenate([averages[alpha] for alpha in unit.scales])
            inner = inner + linear(unit.of_recurrent, f(linear(unit.recurrent, mu)))
        statistics = f(inner)
        for alpha in unit.scales:
            averages[alpha] = alpha * averages[alpha] + (1 - alpha) * statistics
        mu = np.concatenate([averages[alpha] for alpha in unit.scales])
        outputs.append(f(linear(unit.of_averages, mu)))
    return np.array(outputs)


def _sigmoid(t):
    return 1 / (1 + np.exp(-t))


def gru(unit, points):
    """Outputs of a gated recurrent unit (Cho et al. 2014; the bias of the new state's own part)."""
    cell, n = unit.cell, unit.n_outputs
    w_x, w_h = (np.asarray(w, np.float64) for w in (cell.weight_ih, cell.weight_hh))
    b, b_n = np.asarray(cell.bias, np.float64), np.asarray(cell.bias_n, np.float64)
    h, outputs = np.zeros(n), []
    for x in np.asarray(points, np.float64):
        of_x, of_h = w_x @ x + b, w_h @ h
        reset = _sigmoid(of_x[:n] + of_h[:n])
        update = _sigmoid(of_x[n : 2 * n] + of_h[n : 2 * n])
        new = np.tanh(of_x[2 * n :] + reset * (of_h[2 * n :] + b_n))
        h = new + update * (h - new)
        outputs.append(h)
    return np.array(outputs)


def lstm(unit, points):
    """Outputs of long short-term memory."""
    cell, n = unit.cell, unit.n_outputs
    w_x, w_h = (np.asarray(w, np.float64) for w in (cell.weight_ih, cell.weight_hh))
    b = np.asarray(cell.bias, np.float64)
    h, c, outputs = np.zeros(n), np.zeros(n), []
    for x in np.asarray(points, np.float64):
        i, f, g, o = np.split(w_x @ x + w_h @ h + b, 4)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.array(outputs)


def recurrent_transformation(item, x):
    """z and log |det| of (8.9) and (8.11), coordinate by coordinate."""
    from bagbasis.neural.transformations import LEAKY_SLOPE

    y, w, b, u, V, a = (
        np.asarray(value, np.float64)
        for value in (np.exp(item.log_y), item.w, item.b, item.u, item.V, item.a)
    )
    s, z, log_det = np.zeros(len(w)), [], 0.0
    for x_i in x:
        t = y * x_i + w @ s + b
        z.append(t if t >= 0 else LEAKY_SLOPE * t)
        log_det += np.log(y) + (0.0 if t >= 0 else np.log(LEAKY_SLOPE))
        s = np.maximum(u * x_i + V @ s + a, 0)
    return np.array(z), log_det


def mixture_density(z, mixture):
    """The density of a mixture of normal distributions, (3, K), at a number."""
    logits, means, logs = np.asarray(mixture, np.float64)
    weights = np.exp(logits) / np.exp(logits).sum()
    scales = np.exp(logs)
    return (weights * np.exp(-0.5 * ((z - means) / scales) ** 2) / scales).sum() / (
        2 * np.pi
    ) ** 0.5


def lam_states(item, z):
    """h_i = W^(i) z_<i + b^(i) (8.5)."""
    W, b = np.asarray(item.weights, np.float64), np.asarray(item.bias, np.float64)
    return np.array([b[i] + sum(W[i, :, j] * z[j] for j in range(i)) for i in range(len(z))])


def tied_states(item, z):
    """h_i = W_<i z_<i + b (8.16)."""
    W, b = np.asarray(item.weights, np.float64), np.asarray(item.bias, np.float64)
    return np.array([b + sum(W[j] * z[j] for j in range(i)) for i in range(len(z))])
