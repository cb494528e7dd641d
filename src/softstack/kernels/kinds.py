"""The controllers and memories that have kernels, and the numbers by which compiled code knows them."""

LINEAR, RNN, GRU, LSTM = range(4)
STACK, QUEUE, NONE = range(3)
CORES = {"linear": LINEAR, "rnn": RNN, "gru": GRU, "lstm": LSTM}
MEMORIES = {"stack": STACK, "queue": QUEUE, "none": NONE}
