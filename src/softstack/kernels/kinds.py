"""The controllers and memories that have kernels, and the numbers by which compiled code knows them."""

LINEAR, RNN, GRU, LSTM = range(4)
STACK, QUEUE, NONE, SUPERPOSITION, MULTIPOP, DEQUE = range(6)
CORES = {"linear": LINEAR, "rnn": RNN, "gru": GRU, "lstm": LSTM}
MEMORIES = {"stack": STACK, "queue": QUEUE, "none": NONE}
# on the CPU alone, and without buffers
UNBUFFERED = {"superposition": SUPERPOSITION, "multipop": MULTIPOP, "deque": DEQUE}
STRENGTHS = (2, 2, 2, 0, 1, 4)  # by kind of memory: how many strengths it is told in a step; buffers add two
ENDS = (1, 1, 1, 1, 1, 2)  # by kind of memory: at how many ends it is pushed to and read
