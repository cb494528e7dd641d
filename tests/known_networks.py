"""Networks of which it is known what they do with their memory, and machines of which networks are made."""

from dataclasses import replace
from typing import NamedTuple

import torch

import softstack as ss
from softstack.formal.machines import dyck, real_time_dyck
from softstack.formal.transducer import Transducer
from softstack.lab import tasks
from softstack.lab.explain.compiled import compile_task
from softstack.lab.training.conditions import Condition, build
from softstack.lab.training.train import train

BRACKETS = [("(", ")"), ("[", "]"), ("{", "}")]
# What is pushed and popped in silence is asked for by ? alone, one letter of many.
ECHOES = "\n".join(f"q -> q   {x} : {x}" for x in "defghijklm")
ASKED = f"start q\n{ECHOES}\nq -> q   ? : e , $ -> $\nq -> q   c : _ , $ -> $"
PUSHED = "q -> q   {0} : _ , ε -> {0}\nq -> q   c : _ , {0} -> ε\nq -> q   ? : {0} , {0} -> {0}"
MACHINES = {
    # counters
    "one bracket": dyck([("(", ")")], "_"),
    "one bracket at once": real_time_dyck([("(", ")")], "_"),
    "equal numbers": Transducer.parse("""
        start q
        q -> q   a : 0 , $ -> $ Z
        q -> q   a : 0 , Z -> Z A
        q -> q   a : 0 , A -> A A
        q -> p   b : 0 , A -> ε
        q -> p   b : 1 , Z -> ε
        p -> p   b : 0 , A -> ε
        p -> p   b : 1 , Z -> ε
        p -> q   a : 0 , $ -> $ Z
    """),
    "two names for one": Transducer.parse("""
        start q
        q -> q   a : y , ε -> A
        q -> q   b : y , ε -> B
        q -> q   c : n , A -> ε
        q -> q   c : n , B -> ε
        q -> q   c : e , $ -> $
    """),
    "counts and echoes": Transducer.parse("""
        start q
        q -> q   a : a , ε -> I
        q -> q   b : b , ε -> I
        q -> q   # : n , I -> ε
        q -> q   # : e , $ -> $
    """),
    "counts by threes": Transducer.parse("""
        start q
        q -> q   a : ε , ε -> I I I
        q -> q   b : x , I -> ε
        q -> q   b : e , $ -> $
    """),
    "which are more": Transducer.parse("""
        start q
        q -> q   l : < , $ -> $ L
        q -> q   l : < , L -> L L
        q -> q   r : > , $ -> $ R
        q -> q   r : > , R -> R R
        q -> d   l : ε , R -> ε
        q -> d   r : ε , L -> ε
        d -> q   ε : = , $ -> $
        d -> q   ε : < , L -> L
        d -> q   ε : > , R -> R
    """),
    "asked how many": Transducer.parse("\n".join([ASKED, PUSHED.format("a")])),
    # registers
    "xor on the stack": Transducer.parse("""
        start q
        q -> q   0 : 0 , $ -> $ 0
        q -> q   1 : 1 , $ -> $ 1
        q -> q   0 : 0 , 0 -> 0
        q -> q   1 : 1 , 0 -> 1
        q -> q   0 : 1 , 1 -> 1
        q -> q   1 : 0 , 1 -> 0
    """),
    "the last one, pushed": Transducer.parse("""
        start q
        q -> q   0 : _ , $ -> $ 0
        q -> q   1 : _ , $ -> $ 1
        q -> q   0 : 0 , 0 -> 0 0
        q -> q   1 : 0 , 0 -> 0 1
        q -> q   0 : 1 , 1 -> 1 0
        q -> q   1 : 1 , 1 -> 1 1
    """),
    "a value that is set": Transducer.parse("""
        start q
        q -> s   set : ε
        s -> q   a : _ , $ -> $ a
        s -> q   b : _ , $ -> $ b
        s -> q   a : _ , a -> a
        s -> q   a : _ , b -> a
        s -> q   b : _ , a -> b
        s -> q   b : _ , b -> b
        q -> q   get : a , a -> a
        q -> q   get : b , b -> b
        q -> q   get : _ , $ -> $
    """),
    "modulo three": Transducer.parse("""
        start q
        q -> q   1 : 1 , $ -> $ A
        q -> q   1 : 2 , A -> B
        q -> q   1 : 0 , B -> C
        q -> q   1 : 1 , C -> A
        q -> q   0 : 0 , $ -> $
        q -> q   0 : 1 , A -> A
        q -> q   0 : 2 , B -> B
        q -> q   0 : 0 , C -> C
    """),
    # stacks
    "asked what": Transducer.parse("\n".join([ASKED, PUSHED.format("a"), PUSHED.format("b")])),
    "mostly silent": Transducer.parse("""
        start q
        q -> q   x : # , ε -> a
        q -> q   y : # , ε -> b
        q -> q   # : y , a -> ε
        q -> q   # : x , b -> ε
    """),
    "three brackets": dyck(BRACKETS, "_"),
    "two brackets at once": real_time_dyck(BRACKETS[:2], "_"),
    "palindromes with a centre": Transducer.parse("""
        start w
        w -> w     a : _ , ε -> a
        w -> w     b : _ , ε -> b
        w -> v     c : _
        v -> v     a : y , a -> ε
        v -> v     b : y , b -> ε
        v -> bad   a : n , b -> ε
        v -> bad   b : n , a -> ε
        v -> w     c : e , $ -> $
        bad -> bad   a : n
        bad -> bad   b : n
        bad -> bad   c : n
    """),
    "reverse at once": Transducer.parse("""
        start q
        q -> q   0 : ε , ε -> 0
        q -> q   1 : ε , ε -> 1
        q -> e   # : #
        e -> e   ε : 0 , 0 -> ε
        e -> e   ε : 1 , 1 -> ε
        e -> q   ε : # , $ -> $
    """),
    "two on the stack": Transducer.parse("""
        start q
        q -> r   0 : _ , ε -> 0
        q -> r   1 : _ , ε -> 1
        r -> s   0 : _ , ε -> 0
        r -> s   1 : _ , ε -> 1
        s -> t   # : 0 , 0 -> ε
        s -> t   # : 1 , 1 -> ε
        t -> q   # : 0 , 0 -> ε
        t -> q   # : 1 , 1 -> ε
    """),
    "brackets and an error state": Transducer.parse("""
        start q
        q -> q   ( : o , ε -> (
        q -> q   [ : o , ε -> [
        q -> q   ) : c , ( -> ε
        q -> q   ] : c , [ -> ε
        q -> bad   ) : n , [ -> [
        q -> bad   ] : n , ( -> (
        q -> bad   ) : n , $ -> $
        q -> bad   ] : n , $ -> $
        bad -> bad   ( : n
        bad -> bad   [ : n
        bad -> bad   ) : n
        bad -> bad   ] : n
    """),
    # no use of the stack
    "a flip-flop": Transducer.parse("""
        start off
        off -> on    t : 1
        on -> off    t : 0
        off -> off   k : 0
        on -> on     k : 1
    """),
    "pushes and never looks": Transducer.parse("""
        start q
        q -> q   a : a , ε -> A
        q -> r   b : b , ε -> B
        r -> q   a : b , ε -> A
        r -> r   b : a , ε -> B
    """),
}


class Known(NamedTuple):
    network: object
    condition: Condition
    truth: str


def compiled_from(name, **options):
    """The network of a task's machine, or of one here."""
    if name in MACHINES:
        compilation, trial = compile_task(MACHINES[name], str(MACHINES[name]), **options)
    else:
        compilation, trial = compile_task(tasks.machine_of(tasks.find(name)), name, **options)
    return compilation.network, replace(trial.condition, test_size=100)


def says_others(network, condition):
    """Its answers are others, one for each: it does with its memory what it did."""
    rows = network.cell.heads.rows("y")
    task = tasks.find(condition.task)
    used = [task.alphabet.index(symbol) for symbol in task.outputs]
    order = list(range(len(task.alphabet)))
    for k, j in zip(used, used[1:] + used[:1], strict=True):
        order[k] = j
    with torch.no_grad():
        for part in (network.cell.heads.weight, network.cell.heads.bias):
            part[rows] = part[rows][order].clone()
    return network, condition


def blind(network, condition):
    """Its controller does not see what is read."""
    letters = len(tasks.find(condition.task).alphabet)
    core = network.cell.core
    with torch.no_grad():
        weight = core.from_input.weight if hasattr(core, "from_input") else network.cell.heads.weight
        weight[:, letters : letters + network.cell.memory.width] = 0
    return network, condition


def with_a_queue(network, condition):
    """The same weights at a queue."""
    condition = replace(condition, memory="queue")
    queued = build(condition)
    if isinstance(network, ss.BufferedStackRNN):
        queued.steps = network.steps
    queued.load_state_dict(network.state_dict())
    return queued, condition


def trained(task, controller, **sizes):
    """A trial by the paper's protocol, which takes a second or two."""
    condition = Condition(task, controller, **sizes)
    [trial] = train(condition, [0])
    network = build(condition)
    network.load_state_dict(trial.weights)
    return network, condition


LINEAR = dict(controller="linear", buffered=False)
AT_ONCE = dict(buffered=False)
KNOWN = {
    "reversal": (lambda: compiled_from("reversal"), "stack"),
    "reversal, linear": (lambda: compiled_from("reversal", **LINEAR), "stack"),
    "reversal, others said": (lambda: says_others(*compiled_from("reversal")), "stack"),
    "reversal, linear, others said": (lambda: says_others(*compiled_from("reversal", **LINEAR)), "stack"),
    "reversal, soft": (lambda: compiled_from("reversal", tolerance=0.02, length=100), "stack"),
    "selective reversal": (lambda: compiled_from("selective_reversal"), "stack"),
    "parenthesis": (lambda: compiled_from("parenthesis"), "stack"),
    "parenthesis, others said": (lambda: says_others(*compiled_from("parenthesis")), "stack"),
    "formula": (lambda: compiled_from("formula"), "stack"),
    "formula at once": (lambda: compiled_from("formula", **AT_ONCE), "stack"),
    "formula, others said": (lambda: says_others(*compiled_from("formula", **AT_ONCE)), "stack"),
    "agreement": (lambda: compiled_from("agreement", **AT_ONCE), "stack"),
    "agreement, binary": (lambda: compiled_from("agreement", codes="binary"), "stack"),
    **{
        name: (lambda name=name: compiled_from(name), "stack")
        for name in ("three brackets", "palindromes with a centre", "reverse at once", "two on the stack",
                     "brackets and an error state")
    },
    "two brackets at once": (lambda: compiled_from("two brackets at once", **AT_ONCE), "stack"),
    "asked what": (lambda: compiled_from("asked what", **AT_ONCE), "stack"),
    "errors, others said": (lambda: says_others(*compiled_from("brackets and an error state")), "stack"),
    **{
        name: (lambda name=name: compiled_from(name), "counter")
        for name in ("one bracket", "one bracket at once", "equal numbers", "two names for one",
                     "counts and echoes", "counts by threes", "which are more")
    },
    "asked how many": (lambda: compiled_from("asked how many", **AT_ONCE), "counter"),
    "one bracket, others said": (lambda: says_others(*compiled_from("one bracket")), "counter"),
    "two names for one, at once": (lambda: compiled_from("two names for one", **AT_ONCE), "counter"),
    "counts in a queue": (lambda: with_a_queue(*compiled_from("counts and echoes", **LINEAR)), "counter"),
    **{
        name: (lambda name=name: compiled_from(name), "register")
        for name in ("xor on the stack", "the last one, pushed", "a value that is set", "modulo three")
    },
    "register, others said": (lambda: says_others(*compiled_from("xor on the stack", **AT_ONCE)), "register"),
    "the last one, at once": (lambda: compiled_from("the last one, pushed", **AT_ONCE), "register"),
    "xor in a queue": (lambda: with_a_queue(*compiled_from("xor on the stack", **AT_ONCE)), "register"),
    "copy by a queue": (lambda: with_a_queue(*compiled_from("reversal", **LINEAR)), "queue"),
    "queue, others said": (lambda: with_a_queue(*says_others(*compiled_from("reversal", **LINEAR))), "queue"),
    "selective queue": (lambda: with_a_queue(*compiled_from("selective_reversal", **LINEAR)), "queue"),
    "copy by a queue, lstm": (lambda: with_a_queue(*compiled_from("reversal", **AT_ONCE)), "queue"),
    "copy by a queue, buffered": (lambda: with_a_queue(*compiled_from("reversal")), "queue"),
    "a queue at once": (lambda: with_a_queue(*compiled_from("reverse at once")), "queue"),
    "mostly silent": (lambda: compiled_from("mostly silent", **LINEAR), "stack"),
    "mostly silent, trained": (lambda: trained(str(MACHINES["mostly silent"]), "linear"), "register"),
    "reversal, trained": (lambda: trained("reversal", "linear"), "stack"),
    "delayed xor, trained": (lambda: trained("delayed_xor", "linear", memory_size=6), "register"),
    "xor, trained": (lambda: trained("xor", "lstm", memory_size=6), "ignored"),
    "xor": (lambda: compiled_from("xor"), "ignored"),
    "delayed xor, others said": (lambda: says_others(*compiled_from("delayed_xor", **AT_ONCE)), "ignored"),
    **{
        name: (lambda name=name: compiled_from(name), "ignored")
        for name in ("a flip-flop", "pushes and never looks")
    },
    "reversal, blind": (lambda: blind(*compiled_from("reversal", **AT_ONCE)), "ignored"),
    "reversal, linear, blind": (lambda: blind(*compiled_from("reversal", **LINEAR)), "ignored"),
    "formula, blind": (lambda: blind(*compiled_from("formula", **AT_ONCE)), "ignored"),
    "agreement, blind": (lambda: blind(*compiled_from("agreement", **AT_ONCE)), "ignored"),
    "copy by a blind queue": (lambda: blind(*with_a_queue(*compiled_from("reversal", **LINEAR))), "ignored"),
}  # fmt: skip
