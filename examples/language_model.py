"""A small language model with a stack, on any text: trained, scored, and asked to write.

    python examples/language_model.py                  on brackets that it draws itself
    python examples/language_model.py FILE             on your own text
    python examples/language_model.py --memory none    the same model without a stack

StackRNN stands where nn.LSTM would. Its state goes in and comes out, so that text can be written symbol by
symbol.
"""

import argparse
import math
import random
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import softstack as ss


class LanguageModel(nn.Module):
    def __init__(self, letters: int, memory: str, width: int = 16, hidden: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(letters, width)
        self.rnn = ss.StackRNN(
            width,
            controller="rnn",
            hidden_size=hidden,
            memory=memory,
            memory_size=8,
            state_reset=0.2,  # in training the controller's own state is lost now and then, and blurred, so
            hidden_noise=0.2,  # that it learns to keep things on its stack
        )
        self.next = nn.Linear(hidden, letters)

    def forward(self, text: Tensor, state: ss.State | None = None) -> tuple[Tensor, ss.State]:
        features, state = self.rnn(self.embedding(text), state)
        return self.next(features), state  # (B, T, letters)


def brackets(count: int, rng: random.Random) -> str:
    """Nested brackets of three kinds, one text per line."""
    lines = []
    for _ in range(count):
        line, unclosed = "", ""
        for left in range(40, 0, -1):
            if unclosed and (len(unclosed) >= left or rng.random() < 0.5):
                line, unclosed = line + unclosed[-1], unclosed[:-1]
            else:
                kind = rng.randrange(3)
                line, unclosed = line + "([{"[kind], unclosed + ")]}"[kind]
        lines.append(line)
    return "\n".join(lines)


def bits_per_symbol(model: LanguageModel, text: Tensor) -> Tensor:
    logits, _ = model(text[:, :-1])
    return cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten()) / math.log(2)


def trained(
    model: LanguageModel, text: Tensor, starts: Tensor, steps: int, window: int, batch: int = 32
) -> None:
    """Each batch reads windows of the text that begin at some of `starts`."""
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        begins = starts[torch.randint(len(starts), (batch, 1))]
        loss = bits_per_symbol(model, text[begins + torch.arange(window)])
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        rate.step()


@torch.no_grad()
def written(model: LanguageModel, first: int, count: int) -> list[int]:
    """What the model goes on with after one symbol: it keeps its state from symbol to symbol."""
    symbols, state = [first], None
    for _ in range(count):
        logits, state = model(torch.tensor([[symbols[-1]]]), state)
        symbols.append(int(torch.multinomial(logits[0, -1].softmax(-1), 1)))
    return symbols


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, help="text to learn from")
    parser.add_argument("--memory", default="stack", help="stack, queue or none")
    parser.add_argument("--steps", type=int, default=1000, help="of training")
    parser.add_argument("--window", type=int, default=42, help="symbols that are read in one go")
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    torch.set_num_threads(1)  # models as small as this are fastest on one core
    content = options.file.read_text() if options.file else brackets(1000, random.Random(0))
    alphabet = sorted(set(content))
    text = torch.tensor([alphabet.index(letter) for letter in content])
    kept = len(text) * 9 // 10
    lines = [0, *(k + 1 for k, letter in enumerate(content) if letter == "\n")]
    starts = torch.tensor([start for start in lines if start + options.window <= len(text)])
    learnt, held_out = starts[starts + options.window <= kept], starts[starts >= kept]
    model = LanguageModel(len(alphabet), options.memory)
    trained(model, text, learnt, options.steps, options.window)
    model.eval()
    with torch.no_grad():
        bits = float(bits_per_symbol(model, text[held_out[:, None] + torch.arange(options.window)]))
    print(
        f"memory {options.memory}: {bits:.3f} bits per symbol of {len(held_out)} lines that it has not seen"
    )
    print("".join(alphabet[k] for k in written(model, int(text[0]), 80)))
    return bits


if __name__ == "__main__":
    main()
