"""The paper's equations, transcribed one by one as loops over items. Slow, and nothing is rearranged.

One sequence, no batch. Items are numbered from 1 as in the paper; index 0 is unused. Everything is a
torch scalar, so that autograd gives the oracle's gradients too.
"""

import torch
from torch import Tensor, relu


def stack(v: Tensor, u: Tensor, d: Tensor) -> tuple[Tensor, list[Tensor]]:
    """§2.1. v (T, m), u (T,), d (T,) -> r (T, m) and the strengths s_T[1..T]."""
    reads = []
    V: list = [None]
    s: list = [None]  # s_{t-1}[1], ..., s_{t-1}[t-1]
    for t in range(1, len(v) + 1):
        v_t, u_t, d_t = v[t - 1], u[t - 1], d[t - 1]
        left: list = [None] * t  # u_t[i]
        for i in range(t - 1, 0, -1):
            left[i] = u_t if i == t - 1 else relu(left[i + 1] - s[i + 1])
        s = [None] + [relu(s[i] - left[i]) for i in range(1, t)] + [d_t]
        V = [*V, v_t]
        rho: list = [None] * (t + 1)
        for i in range(t, 0, -1):
            rho[i] = torch.ones_like(u_t) if i == t else relu(rho[i + 1] - s[i + 1])
        reads.append(sum(torch.min(s[i], rho[i]) * V[i] for i in range(1, t + 1)))
    return torch.stack(reads), s[1:]


def dequeue(strengths: list, amount: Tensor) -> list:
    """§2.3, ι and i_t, with the misprint mended: item j - 1 is what was met before item j."""
    n = len(strengths) - 1
    iota: list = [None] * (n + 1)
    for j in range(1, n + 1):
        iota[j] = amount if j == 1 else relu(iota[j - 1] - strengths[j - 1])
    return [None] + [relu(strengths[j] - iota[j]) for j in range(1, n + 1)]


def front(items: list, strengths: list) -> Tensor:
    """§2.3, ξ and x_t."""
    n = len(strengths) - 1
    xi: list = [None] * (n + 1)
    for j in range(1, n + 1):
        xi[j] = torch.ones_like(strengths[1]) if j == 1 else relu(xi[j - 1] - strengths[j - 1])
    return sum(torch.min(strengths[j], xi[j]) * items[j] for j in range(1, n + 1))


def queue(v: Tensor, u: Tensor, d: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Dequeue, enqueue, read: a queue over a sequence."""
    reads = []
    V: list = [None]
    s: list = [None]
    for v_t, u_t, d_t in zip(v, u, d, strict=True):
        s = [*dequeue(s, u_t), d_t]
        V = [*V, v_t]
        reads.append(front(V, s))
    return torch.stack(reads), s[1:]


def lstm_cell(z: Tensor, h: Tensor, c: Tensor, weights: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """The LSTM of PyTorch, gate by gate."""
    n = len(h)
    gates = (
        weights["core.from_input.weight"] @ z
        + weights["core.from_input.bias"]
        + weights["core.from_hidden.weight"] @ h
        + weights["core.from_hidden.bias"]
    )
    i, f = torch.sigmoid(gates[:n]), torch.sigmoid(gates[n : 2 * n])
    g, o = torch.tanh(gates[2 * n : 3 * n]), torch.sigmoid(gates[3 * n :])
    c = f * c + i * g
    return o * torch.tanh(c), c


def heads(features: Tensor, weights: dict[str, Tensor], m: int, buffered: bool) -> dict[str, Tensor]:
    """§2.2: each head by its own rows: u, d, then i, o in a buffered network, then v, then y."""
    row = 0
    out = {}
    for name, size in [
        ("u", 1),
        ("d", 1),
        *([("i", 1), ("o", 1)] if buffered else []),
        ("v", m),
        ("y", None),
    ]:
        rows = slice(row, None if size is None else row + size)
        raw = weights["heads.weight"][rows] @ features + weights["heads.bias"][rows]
        out[name] = raw if name == "y" else torch.sigmoid(raw)
        row += size or 0
    return {name: x[0] if name in "udio" else x for name, x in out.items()}


def network(
    x: Tensor,
    weights: dict[str, Tensor],
    m: int,
    *,
    lstm: bool,
    steps: int | None = None,
    discard_first: bool = False,
) -> Tensor:
    """Figure 1, or with `steps` Figure 2, on one sequence x (T, K); the memory is a stack."""
    buffered = steps is not None
    hidden = weights["core.from_hidden.weight"].shape[1] if lstm else 0
    h = c = x.new_zeros(hidden)
    r = x.new_zeros(m)
    vs, us, ds, ys, os = [], [], [], [], []
    i_items, i_s = [None, *x], [None] + [x.new_ones(())] * len(x)
    take = x.new_zeros(())
    for t in range(steps if buffered else len(x)):
        if buffered:
            i_s = dequeue(i_s, take)
            x_t = front(i_items, i_s)
        else:
            x_t = x[t]
        z = torch.cat([x_t, r])
        if lstm:
            h, c = lstm_cell(z, h, c, weights)
            z = h
        act = heads(z, weights, m, buffered)
        vs.append(act["v"])
        us.append(act["u"])
        ds.append(act["d"])
        ys.append(act["y"])
        r = stack(torch.stack(vs), torch.stack(us), torch.stack(ds))[0][-1]
        if buffered:
            take = act["i"]
            os.append(act["o"])
    if not buffered:
        return torch.stack(ys)
    out, o_s, read = [None, *ys], [None, *os], []
    for k in range(steps):
        if k or discard_first:
            o_s = dequeue(o_s, x.new_ones(()))
        read.append(front(out, o_s))
    return torch.stack(read)


def register(v: Tensor, u: Tensor, d: Tensor) -> Tensor:
    """tests/plugins/register.py, number by number. v (T, m), u (T,), d (T,) -> r (T, m)."""
    held: list = [torch.zeros_like(u[0])] * v.shape[1]
    reads = []
    for t in range(len(v)):
        for k in range(v.shape[1]):
            left = held[k] - u[t] * held[k]
            held = [*held[:k], left + d[t] * (v[t, k] - left), *held[k + 1 :]]
        reads.append(torch.stack(held))
    return torch.stack(reads)


def deque(
    v_top: Tensor, u_top: Tensor, d_top: Tensor, v_bottom: Tensor, u_bottom: Tensor, d_bottom: Tensor
) -> Tensor:
    """Grefenstette et al. (2015), equations 6 to 11: items 1 (bottom) to 2t (top). -> r (T, 2m)."""
    zero, one = torch.zeros_like(u_top[0]), torch.ones_like(u_top[0])
    V: list = [None]
    s: list = [None]
    reads = []
    for t in range(1, len(v_top) + 1):
        n = 2 * (t - 1)
        top, both = [None] * (n + 1), [None] * (n + 1)
        for i in range(1, n + 1):
            top[i] = relu(s[i] - relu(u_top[t - 1] - sum((s[j] for j in range(i + 1, n + 1)), zero)))
        for i in range(1, n + 1):
            both[i] = relu(top[i] - relu(u_bottom[t - 1] - sum((top[j] for j in range(1, i)), zero)))
        V = [None, v_bottom[t - 1], *V[1:], v_top[t - 1]]
        s = [None, d_bottom[t - 1], *both[1:], d_top[t - 1]]
        n = 2 * t
        r_top = r_bottom = torch.zeros_like(v_top[0])
        for i in range(1, n + 1):
            above = sum((s[j] for j in range(i + 1, n + 1)), zero)
            below = sum((s[j] for j in range(1, i)), zero)
            r_top = r_top + torch.min(s[i], relu(one - above)) * V[i]
            r_bottom = r_bottom + torch.min(s[i], relu(one - below)) * V[i]
        reads.append(torch.cat([r_top, r_bottom]))
    return torch.stack(reads)


def superposition(action: Tensor, v: Tensor, depth: int | None = None, empty: float = 0.0) -> Tensor:
    """Joulin and Mikolov (2015), equations 3 to 5: action (T, 3) or, without no-op, (T, 2), v (T, m) ->
    r (T, m). 0 is the top; a cell of `depth` or more is lost, and one that was never filled is `empty`."""
    nothing = torch.full_like(v[0], empty)
    N = (len(v) if depth is None else depth) + 2
    stack: list = [nothing] * N
    reads = []
    for t in range(len(v)):
        push, pop = action[t, 0], action[t, 1]
        stay = action[t, 2] if action.shape[1] == 3 else torch.zeros_like(push)
        new: list = [push * v[t] + pop * stack[1] + stay * stack[0]]
        for i in range(1, N - 2):
            new.append(push * stack[i - 1] + pop * stack[i + 1] + stay * stack[i])
        stack = [*new, nothing, nothing]
        reads.append(stack[0])
    return torch.stack(reads)


def multipop(d: Tensor, pops: Tensor, v: Tensor) -> Tensor:
    """Yogatama et al. (2018): d (T,), pops (T, K + 1), v (T, m) -> r (T, m). 0 is the top."""
    zero, K = torch.zeros_like(v[0]), pops.shape[1] - 1
    depth = len(v) + 1
    stack: list = [zero] * (depth + K)
    reads = []
    for t in range(len(v)):
        popped: list = []
        for i in range(depth):
            popped.append(sum((pops[t, k] * stack[i + k] for k in range(K + 1)), zero))
        stack = [d[t] * v[t] + (1 - d[t]) * popped[0]]
        for i in range(1, depth):
            stack.append(d[t] * popped[i - 1] + (1 - d[t]) * popped[i])
        stack += [zero] * K
        reads.append(stack[0])
    return torch.stack(reads)


def multipop_ways(d: Tensor, pops: Tensor, v: Tensor) -> Tensor:
    """The same without a mean: every way in which the steps can
    go, one by one: a stack is a list of the numbers of the steps that pushed, and has a probability."""
    ways: dict = {(): torch.ones_like(d[0])}
    reads = []
    for t in range(len(v)):
        new: dict = {}
        for stack, chance in ways.items():
            for k in range(pops.shape[1]):
                left = stack[: max(0, len(stack) - k)]
                for after, share in (((*left, t), d[t]), (left, 1 - d[t])):
                    new[after] = new.get(after, 0) + chance * pops[t, k] * share
        ways = new
        reads.append(sum((chance * v[stack[-1]] for stack, chance in ways.items() if stack), 0 * v[0]))
    return torch.stack(reads)


def two_stacks(u_1, u_2, d_1, d_2, v_1, v_2) -> Tensor:
    """The paper's stack, twice: -> r (T, 2m)."""
    return torch.cat((stack(v_1, u_1, d_1)[0], stack(v_2, u_2, d_2)[0]), -1)


def deep_stack(v: Tensor, u: Tensor, d: Tensor) -> Tensor:
    """The paper's stack, and what would be read after one more step that pops 1 and pushes nothing."""
    reads = []
    for t in range(1, len(v) + 1):
        one, none = torch.ones_like(u[:1]), torch.zeros_like(u[:1])
        beneath = stack(torch.cat((v[:t], 0 * v[:1])), torch.cat((u[:t], one)), torch.cat((d[:t], none)))[0]
        reads.append(torch.cat((beneath[t - 1], beneath[t])))
    return torch.stack(reads)


def steque(u: Tensor, v_top: Tensor, d_top: Tensor, v_bottom: Tensor, d_bottom: Tensor) -> Tensor:
    """tests/plugins/steque.py: a deque that is not popped at the bottom, read at the top. -> r (T, m)"""
    both = deque(v_top, u, d_top, v_bottom, torch.zeros_like(u), d_bottom)
    return both[:, : v_top.shape[1]]


def tape(d: Tensor, move: Tensor, v: Tensor) -> Tensor:
    """tests/plugins/tape.py, cell by cell: d (T,), move (T, 3), v (T, m) -> r (T, m)."""
    cells: list = [torch.zeros_like(v[0])] * 8
    place: list = [torch.ones_like(d[0]), *[torch.zeros_like(d[0])] * 7]
    reads = []
    for t in range(len(v)):
        cells = [cells[i] * (1 - d[t] * place[i]) + d[t] * place[i] * v[t] for i in range(8)]
        left, stay, right = move[t]
        place = [left * place[(i + 1) % 8] + stay * place[i] + right * place[i - 1] for i in range(8)]
        reads.append(sum(place[i] * cells[i] for i in range(8)))
    return torch.stack(reads)


def nondeterministic(
    delta: Tensor, v: Tensor | None = None, *, symbols: int = 2, states: int = 2, normalised: bool = False
) -> Tensor:
    """DuSell and Chiang (2023), Lang's algorithm, and with vectors v (T, m): delta (T, K (2K + Q)) ->
    r (T, K), or r (T, K m). Times run from -1, when there is a pair (0, 0) beneath the first symbol."""
    T, states_, symbols_ = len(delta), range(states), range(symbols)
    pairs = [(q, x) for q in states_ for x in symbols_]
    zero, one = torch.zeros_like(delta[0, 0]), torch.ones_like(delta[0, 0])
    gamma: dict = {(-1, 0, *a, *b): zero for a in pairs for b in pairs}  # [i → t][q, x → r, y]
    gamma[-1, 0, 0, 0, 0, 0] = one
    zeta: dict = {} if v is None else dict.fromkeys(gamma, 0 * v[0])
    alpha: dict = {(-1, *a): one if a == (0, 0) else zero for a in pairs}
    for a in pairs:
        alpha[0, *a] = one if a == (0, 0) else zero
    reads = []
    for t in range(1, T + 1):
        raw = delta[t - 1].view(len(pairs), -1)
        weights = torch.softmax(raw, -1) if normalised else torch.exp(raw)
        push, replace, pop = {}, {}, {}
        for a, row in zip(pairs, weights, strict=True):
            for n, b in enumerate(pairs):
                push[a, b], replace[a, b] = row[n], row[len(pairs) + n]
            for r in states_:
                pop[a, r] = row[2 * len(pairs) + r]
        for i in range(-1, t):
            for a in pairs:
                for r, y in pairs:
                    total, vector = zero, 0 if v is None else 0 * v[0]
                    if i == t - 1:
                        total = push[a, (r, y)]
                        vector = 0 if v is None else total * v[t - 1]
                    for b in pairs if i < t - 1 else ():
                        total = total + gamma[i, t - 1, *a, *b] * replace[b, (r, y)]
                        if v is not None:
                            vector = vector + zeta[i, t - 1, *a, *b] * replace[b, (r, y)]
                    for k in range(i + 1, t - 1):
                        for u in states_:
                            inner = sum(gamma[k, t - 1, u, y, *b] * pop[b, r] for b in pairs)
                            total = total + gamma[i, k, *a, u, y] * inner
                            if v is not None:
                                vector = vector + zeta[i, k, *a, u, y] * inner
                    gamma[i, t, *a, r, y] = total
                    zeta[i, t, *a, r, y] = vector
        starts = [(i, a) for i in range(-1, t) for a in pairs]
        for b in pairs:
            alpha[t, *b] = sum(alpha[i, *a] * gamma[i, t, *a, *b] for i, a in starts)
        every = sum(alpha[t, *b] for b in pairs)
        if v is None:
            reads.append(torch.stack([alpha[t, *b] / every for b in pairs]))
        else:
            means = [sum(alpha[i, *a] * zeta[i, t, *a, *b] for i, a in starts) / every for b in pairs]
            reads.append(torch.cat(means))
    return torch.stack(reads)
