"""What controllers do number by number, forward and backward, on rows of LANES numbers."""

from softstack.kernels.cpu.compiling import inlined
from softstack.kernels.cpu.layout import LANES
from softstack.kernels.cpu.math import sigmoid, tanh
from softstack.kernels.cpu.row import full, load, store, times_plus


@inlined
def sigmoids(y, x):
    for i in range(0, y.shape[0], LANES):
        store(y, i, sigmoid(load(x, i)))


@inlined
def tanhs(y, x):
    for i in range(0, y.shape[0], LANES):
        store(y, i, tanh(load(x, i)))


@inlined
def copy(y, x):
    for i in range(0, y.shape[0], LANES):
        store(y, i, load(x, i))


@inlined
def zero(y):
    for i in range(0, y.shape[0], LANES):
        store(y, i, full(y, 0.0))


@inlined
def unsquash(g, y):
    """The gradient before a sigmoid, from that after it, which was y."""
    one = full(y, 1.0)
    for i in range(0, g.shape[0], LANES):
        after = load(y, i)
        store(g, i, load(g, i) * (after * (one - after)))


@inlined
def untanh(g, after, y):
    """The gradient before a tanh, from that after it, which was y."""
    one = full(y, 1.0)
    for i in range(0, g.shape[0], LANES):
        was = load(y, i)
        store(g, i, load(after, i) * times_plus(-was, was, one))


@inlined
def lstm(h, c, squashed, gates, was, pre):
    """i, f and o = sigmoid, g = tanh; c_t = f c_{t-1} + i g, h_t = o tanh(c_t)."""
    n = h.shape[0]
    for i in range(0, n, LANES):
        into, forget = sigmoid(load(pre, i)), sigmoid(load(pre, n + i))
        new, give = tanh(load(pre, 2 * n + i)), sigmoid(load(pre, 3 * n + i))
        cell = times_plus(forget, load(was, i), into * new)
        after = tanh(cell)
        store(gates, i, into)
        store(gates, n + i, forget)
        store(gates, 2 * n + i, new)
        store(gates, 3 * n + i, give)
        store(c, i, cell)
        store(squashed, i, after)
        store(h, i, give * after)


@inlined
def lstm_backward(pre, gc, gh, squashed, was, gates):
    """From gh and gc of step t: pre, of what the gates squash, and gc of step t - 1."""
    n = gh.shape[0]
    one = full(gh, 1.0)
    for i in range(0, n, LANES):
        into, forget = load(gates, i), load(gates, n + i)
        new, give = load(gates, 2 * n + i), load(gates, 3 * n + i)
        after, g = load(squashed, i), load(gh, i)
        cell = times_plus(g * give, times_plus(-after, after, one), load(gc, i))
        store(pre, i, cell * new * (into * (one - into)))
        store(pre, n + i, cell * load(was, i) * (forget * (one - forget)))
        store(pre, 2 * n + i, cell * into * times_plus(-new, new, one))
        store(pre, 3 * n + i, g * after * (give * (one - give)))
        store(gc, i, cell * forget)


@inlined
def gru(h, was, gates, pre):
    """reset and update = sigmoid, g = tanh(pre + reset rec), h_t = g + update (h_{t-1} - g). `gates` gets the
    three; rec is behind them already."""
    n = h.shape[0]
    for i in range(0, n, LANES):
        reset, update = sigmoid(load(pre, i)), sigmoid(load(pre, n + i))
        new = tanh(times_plus(reset, load(gates, 3 * n + i), load(pre, 2 * n + i)))
        store(gates, i, reset)
        store(gates, n + i, update)
        store(gates, 2 * n + i, new)
        store(h, i, times_plus(update, load(was, i) - new, new))


@inlined
def gru_backward(pre, grec, gh, was, gates):
    """From gh of step t: pre, grec, and the part of gh of step t - 1 that passes the update gate."""
    n = was.shape[0]
    one = full(gh, 1.0)
    for i in range(0, n, LANES):
        reset, update = load(gates, i), load(gates, n + i)
        new, rec, g = load(gates, 2 * n + i), load(gates, 3 * n + i), load(gh, i)
        to_new = g * (one - update) * times_plus(-new, new, one)
        store(pre, i, to_new * rec * (reset * (one - reset)))
        store(pre, n + i, g * (load(was, i) - new) * (update * (one - update)))
        store(pre, 2 * n + i, to_new)
        store(grec, i, to_new * reset)
        store(gh, i, g * update)


@inlined
def hold(x, was, lane):
    """A sequence that has ended keeps its state: lane by lane, x = was."""
    for i in range(lane, x.shape[0], LANES):
        x[i] = was[i]


@inlined
def clear(x, lane):
    for i in range(lane, x.shape[0], LANES):
        x[i] = 0
