"""What controllers do in a step, forward and number by number back, on rows of LANES numbers: arrays
(n, LANES)."""

from softstack.kernels.cpu.compiling import inlined
from softstack.kernels.cpu.lanes import affine
from softstack.kernels.cpu.math import exp, sigmoid, tanh
from softstack.kernels.cpu.row import full, if_less, load, store, times_plus, total
from softstack.kernels.kinds import GRU, LINEAR, LSTM, RNN


@inlined
def squash(y, x, count):
    """Of x, the first `count` rows through a sigmoid, and the others as they are."""
    for i in range(count):
        store(y, i, sigmoid(load(x, i)))
    for i in range(count, y.shape[0]):
        store(y, i, load(x, i))


@inlined
def unsquash(g, y, count):
    """The gradients before those sigmoids, from those after them, which were y."""
    one = full(y, 1.0)
    for i in range(count):
        after = load(y, i)
        store(g, i, load(g, i) * (after * (one - after)))


@inlined
def choose(act, raw, first, count):
    """The softmax of `count` rows of raw from `first` on."""
    most, mass = load(raw, first), full(raw, 0.0)
    for i in range(first + 1, first + count):
        most = if_less(most, load(raw, i), load(raw, i), most)
    for i in range(first, first + count):
        share = exp(load(raw, i) - most)
        store(act, i, share)
        mass = mass + share
    for i in range(first, first + count):
        store(act, i, load(act, i) / mass)


@inlined
def unchoose(g, act, first, count):
    """The gradients before that softmax, from those after it."""
    mean = full(act, 0.0)
    for i in range(first, first + count):
        mean = times_plus(load(act, i), load(g, i), mean)
    for i in range(first, first + count):
        store(g, i, load(act, i) * (load(g, i) - mean))


@inlined
def copy(y, begin, x):
    """All of x into rows `begin` and on of y."""
    for i in range(x.shape[0]):
        store(y, begin + i, load(x, i))


@inlined
def scale(y, x, factors):
    """x, every row times that of `factors` (1, LANES)."""
    factor = load(factors, 0)
    for i in range(y.shape[0]):
        store(y, i, load(x, i) * factor)


@inlined
def add(y, x):
    for i in range(y.shape[0]):
        store(y, i, load(y, i) + load(x, i))


@inlined
def subtract(y, x, less):
    for i in range(y.shape[0]):
        store(y, i, load(x, i) - load(less, i))


@inlined
def zero(y):
    for i in range(y.shape[0]):
        store(y, i, full(y, 0.0))


@inlined
def tanhs(y, x):
    for i in range(y.shape[0]):
        store(y, i, tanh(load(x, i)))


@inlined
def untanh(g, after, y):
    """The gradient before a tanh, from that after it, which was y."""
    one = full(y, 1.0)
    for i in range(g.shape[0]):
        was = load(y, i)
        store(g, i, load(after, i) * times_plus(-was, was, one))


@inlined
def lstm(h, c, gates, was, pre):
    """i, f and o = sigmoid, g = tanh; c_t = f c_{t-1} + i g, h_t = o tanh(c_t). `gates` gets i, f, g, o and
    tanh(c_t)."""
    n = h.shape[0]
    for i in range(n):
        into, forget = sigmoid(load(pre, i)), sigmoid(load(pre, n + i))
        new, give = tanh(load(pre, 2 * n + i)), sigmoid(load(pre, 3 * n + i))
        cell = times_plus(forget, load(was, i), into * new)
        after = tanh(cell)
        store(gates, i, into)
        store(gates, n + i, forget)
        store(gates, 2 * n + i, new)
        store(gates, 3 * n + i, give)
        store(gates, 4 * n + i, after)
        store(c, i, cell)
        store(h, i, give * after)


@inlined
def lstm_backward(pre, gc, gh, was, gates):
    """From gh and gc of step t: pre, of what the gates squash, and gc of step t - 1."""
    n = gh.shape[0]
    one = full(gh, 1.0)
    for i in range(n):
        into, forget = load(gates, i), load(gates, n + i)
        new, give = load(gates, 2 * n + i), load(gates, 3 * n + i)
        after, g = load(gates, 4 * n + i), load(gh, i)
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
    for i in range(n):
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
    for i in range(n):
        reset, update = load(gates, i), load(gates, n + i)
        new, rec, g = load(gates, 2 * n + i), load(gates, 3 * n + i), load(gh, i)
        to_new = g * (one - update) * times_plus(-new, new, one)
        store(pre, i, to_new * rec * (reset * (one - reset)))
        store(pre, n + i, g * (load(was, i) - new) * (update * (one - update)))
        store(pre, 2 * n + i, to_new)
        store(grec, i, to_new * reset)
        store(gh, i, g * update)


@inlined
def act(
    core, w, x, r, h_was, h_new, c_was, c_new, gates, pre, out, at_p, at_v, at_y, action, noise, depths,
    disturbed,
):  # fmt: skip
    """§2.2: what the controller does with x_t, r_{t-1} and h_{t-1}: h_t and c_t, its gates and its actions,
    which are strengths, from `at_p` to `at_v` probabilities, then vectors, and from `at_y` on y. `pre` and
    `out` are room for rows. Where it is disturbed `noise` is added to h_t."""
    H = h_new.shape[0]
    if core == GRU:
        none = x[:0]
        affine(pre[: 2 * H], w.b[: 2 * H], w.W[: 2 * H], x, r, w.Wh[: 2 * H], h_was)
        affine(pre[2 * H :], w.b[2 * H :], w.W[2 * H :], x, r, w.Wh, none)
        affine(gates[3 * H :], w.bn, w.W, none, none, w.Wh[2 * H :], h_was)
        gru(h_new, h_was, gates, pre)
    else:
        affine(pre, w.b, w.W, x, r, w.Wh, h_was)
        if core == LSTM:
            lstm(h_new, c_new, gates, c_was, pre)
        elif core == RNN:
            tanhs(h_new, pre)
    if disturbed:
        add(h_new, noise)
    if core == LINEAR:
        raw = pre
    else:
        affine(out, w.bo, w.W, x[:0], x[:0], w.Wo, h_new)
        raw = out
    squash(action, raw, at_y)
    if depths is not None:
        choose(action, raw, at_p, at_v - at_p)


@inlined
def add_sums(b, y):
    """b[i] += sum over steps, blocks and lanes of y (T, blocks, n, LANES): the gradient of a bias."""
    n = y.shape[2]
    for i in range(n):
        sums = full(y, 0.0)
        for step in range(y.shape[0] * y.shape[1]):
            sums = sums + load(y, step * n + i)
        b[i] += total(sums)


@inlined
def hold(x, was, lane):
    """A sequence that has ended keeps its state: in its lane x = was."""
    for i in range(x.shape[0]):
        x[i, lane] = was[i, lane]


@inlined
def clear(x, lane):
    for i in range(x.shape[0]):
        x[i, lane] = 0
