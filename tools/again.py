"""The recipe of `softstack solve`, trained again: `python tools/again.py OUT.json RUN_ROOT...`.

Writes the test accuracy and dev loss of each trial under the run roots, by network, device and commit. As
results/solved/again.json, `tools/publish.py` shows it beside the published training: one training does not
tell how often a recipe works.
"""

import json
import sys
from pathlib import Path
from typing import Any

from softstack.lab.runs import store
from softstack.lab.training import recipes


def rows(root: Path) -> list[dict[str, Any]]:
    """A row for each network with a stack that the recipe trained there, from all of its trials."""
    listed = []
    for row in recipes.rows():
        trials = sorted((root / row.condition.name).glob("seed-*")) if row.recipe == "solve" else []
        if row.condition.memory != "stack" or not trials:
            continue
        runs = [store.load(path) for path in trials]
        listed.append(
            {
                "condition": row.condition.name,
                "commit": runs[0].provenance["commit"],
                "device": runs[0].provenance["device"],
                "trials": [{name: run.result[name] for name in ("seed", "test", "dev_loss")} for run in runs],
            }
        )
    return listed


if __name__ == "__main__":
    out, *roots = map(Path, sys.argv[1:])
    out.write_text(json.dumps([row for root in roots for row in rows(root)], indent=1) + "\n")
