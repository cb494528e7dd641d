"""Where else the curves of a finished trial go. A sink is a function of a run and the root it is under."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from softstack.errors import BadInput, install
from softstack.lab.runs.store import Run

Sink = Callable[[Path, Run], None]


def _name(run: Run) -> str:
    return f"{run.condition.name}/seed-{run.seed}"


def tensorboard(root: Path, run: Run) -> None:
    """To ROOT/tensorboard; look with `tensorboard --logdir ROOT/tensorboard`."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise BadInput(f"--sink tensorboard needs tensorboard: {install('tensorboard')}") from None
    with SummaryWriter(str(root / "tensorboard" / _name(run))) as writer:
        for number, epoch in enumerate(run.epochs, 1):
            writer.add_scalar("loss", epoch.loss, number)
            writer.add_scalar("dev", epoch.dev, number)
        metrics = {f"result/{split}": run.result[split] for split in ("dev", "test")}
        writer.add_hparams(asdict(run.condition), metrics, run_name=".")


def wandb(root: Path, run: Run) -> None:
    """To Weights & Biases; with WANDB_MODE=offline to ROOT/wandb, for `wandb sync` later."""
    try:
        import wandb as weights_and_biases
    except ImportError:
        raise BadInput(f"--sink wandb needs wandb: {install('wandb')}") from None
    config = {**asdict(run.condition), "seed": run.seed}
    with weights_and_biases.init(
        project="softstack",
        name=_name(run),
        group=run.condition.name,
        config=config,
        dir=root,
        reinit="finish_previous",
    ) as record:
        for number, epoch in enumerate(run.epochs, 1):
            record.log(epoch._asdict(), step=number)
        record.summary.update(run.result)


SINKS: dict[str, Sink] = {"tensorboard": tensorboard, "wandb": wandb}
