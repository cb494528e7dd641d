"""Which implementation runs. The reference, the loop in `networks.py` and `memory.py`, fits everything."""

from softstack.errors import BadInput, unknown

BACKENDS = ("auto", "reference", "cpu", "gpu")


def require(backend: str) -> None:
    """Refuse a backend that is unknown, or that has no kernel."""
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)
    if backend in ("cpu", "gpu"):
        raise BadInput(
            f"backend {backend!r} asks for a fused kernel and this version has none: "
            "use 'auto' or 'reference', which give the same numbers"
        )
