"""The controllers and memories that have kernels, and the numbers by which compiled code knows them."""

LINEAR, RNN, GRU, LSTM = range(4)
STACK, QUEUE, NONE, SUPERPOSITION, WITHOUT_NOOP = range(5)
CORES = {"linear": LINEAR, "rnn": RNN, "gru": GRU, "lstm": LSTM}
MEMORIES = {"stack": STACK, "queue": QUEUE, "none": NONE}
# whose cells stand for depths: on the CPU alone, and without buffers
DEPTHS = {"superposition": SUPERPOSITION, "superposition_without_noop": WITHOUT_NOOP}
