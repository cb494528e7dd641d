"""What controllers do number by number, forward and backward, on rows of LANES numbers."""

from numba import njit

from softstack.kernels.cpu_lanes import LANES
from softstack.kernels.cpu_math import sigmoid, tanh


@njit(cache=True, nogil=True, error_model="numpy")
def sigmoids(y, x):
    for i in range(y.shape[0]):
        y[i] = sigmoid(x[i])


@njit(cache=True, nogil=True, error_model="numpy")
def tanhs(y, x):
    for i in range(y.shape[0]):
        y[i] = tanh(x[i])


@njit(cache=True, nogil=True, error_model="numpy")
def copy(y, x):
    for i in range(y.shape[0]):
        y[i] = x[i]


@njit(cache=True, nogil=True, error_model="numpy")
def unsquash(g, y):
    """The gradient before a sigmoid, from that after it, which was y."""
    for i in range(g.shape[0]):
        g[i] *= y[i] * (1 - y[i])


@njit(cache=True, nogil=True, error_model="numpy")
def untanh(g, after, y):
    """The gradient before a tanh, from that after it, which was y."""
    for i in range(g.shape[0]):
        g[i] = after[i] * (1 - y[i] * y[i])


@njit(cache=True, nogil=True, error_model="numpy")
def lstm_cell(c, was, gates):
    """c_t = f c_{t-1} + i g."""
    n = c.shape[0]
    into, forget, new = gates[:n], gates[n : 2 * n], gates[2 * n : 3 * n]
    for i in range(n):
        c[i] = forget[i] * was[i] + into[i] * new[i]


@njit(cache=True, nogil=True, error_model="numpy")
def lstm_hidden(h, c, gates):
    """h_t = o tanh(c_t)."""
    n = c.shape[0]
    give = gates[3 * n :]
    for i in range(n):
        h[i] = give[i] * tanh(c[i])


@njit(cache=True, nogil=True, error_model="numpy")
def lstm_backward(pre, gc, gh, c, was, gates):
    """From gh and gc of step t: pre, of what the gates squash, and gc of step t - 1."""
    n = c.shape[0]
    into, forget, new, give = gates[:n], gates[n : 2 * n], gates[2 * n : 3 * n], gates[3 * n :]
    to_into, to_forget, to_new, to_give = pre[:n], pre[n : 2 * n], pre[2 * n : 3 * n], pre[3 * n : 4 * n]
    for i in range(n):
        squashed = tanh(c[i])
        to_give[i] = gh[i] * squashed * give[i] * (1 - give[i])
        gc[i] += gh[i] * give[i] * (1 - squashed * squashed)
    for i in range(n):
        to_into[i] = gc[i] * new[i] * into[i] * (1 - into[i])
    for i in range(n):
        to_new[i] = gc[i] * into[i] * (1 - new[i] * new[i])
    for i in range(n):
        to_forget[i] = gc[i] * was[i] * forget[i] * (1 - forget[i])
    for i in range(n):
        gc[i] *= forget[i]


@njit(cache=True, nogil=True, error_model="numpy")
def gru_hidden(h, was, gates, pre):
    """g = tanh(pre + reset rec), h_t = g + update (h_{t-1} - g); gates holds reset, update, g and rec."""
    n = h.shape[0]
    reset, update, new, rec = gates[:n], gates[n : 2 * n], gates[2 * n : 3 * n], gates[3 * n :]
    for i in range(n):
        new[i] = tanh(pre[2 * n + i] + reset[i] * rec[i])
    for i in range(n):
        h[i] = new[i] + update[i] * (was[i] - new[i])


@njit(cache=True, nogil=True, error_model="numpy")
def gru_backward(pre, grec, gh, was, gates):
    """From gh of step t: pre, grec, and the part of gh of step t - 1 that passes the update gate."""
    n = was.shape[0]
    reset, update, new, rec = gates[:n], gates[n : 2 * n], gates[2 * n : 3 * n], gates[3 * n :]
    to_reset, to_update, to_new = pre[:n], pre[n : 2 * n], pre[2 * n : 3 * n]
    for i in range(n):
        to_new[i] = gh[i] * (1 - update[i]) * (1 - new[i] * new[i])
    for i in range(n):
        to_update[i] = gh[i] * (was[i] - new[i]) * update[i] * (1 - update[i])
    for i in range(n):
        to_reset[i] = to_new[i] * rec[i] * reset[i] * (1 - reset[i])
    for i in range(n):
        grec[i] = to_new[i] * reset[i]
    for i in range(n):
        gh[i] *= update[i]


@njit(cache=True, nogil=True, error_model="numpy")
def hold(x, was, lane):
    """A sequence that has ended keeps its state: lane by lane, x = was."""
    for i in range(lane, x.shape[0], LANES):
        x[i] = was[i]


@njit(cache=True, nogil=True, error_model="numpy")
def clear(x, lane):
    for i in range(lane, x.shape[0], LANES):
        x[i] = 0
