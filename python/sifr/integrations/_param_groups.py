"""The groups of an optimizer of torch that stands for the engine's: what a callback may change in
them, and what would have no effect. Nothing here imports torch."""

from __future__ import annotations

from typing import Any

from .._base import UsageError

#: Of a rate: torch's schedules keep theirs there.
_RATES = {"lr", "initial_lr", "min_lr", "max_lr"}


class ParamGroups:
    """What they were when the optimizer was made."""

    def __init__(self, groups: list[dict[str, Any]], where: str) -> None:
        self._where = where  #: what says the rest
        self._made = [self._rest(group) for group in groups]

    @staticmethod
    def _rest(group: dict[str, Any]) -> dict[str, Any]:
        rest = {k: v for k, v in group.items() if k not in _RATES and k != "params"}
        return {
            **rest,
            "params": [id(one) for one in group["params"]],
            "requires_grad": [one.requires_grad for one in group["params"]],
        }

    def rate(self, groups: list[dict[str, Any]]) -> float:
        """Of the next step."""
        if len(groups) != len(self._made):
            self._fail("a group was added", "sifr.freeze says which weights are trained")
        for group, made in zip(groups, self._made, strict=True):
            rest = self._rest(group)
            changed = [name for name in {**made, **rest} if rest.get(name) != made.get(name)]
            if changed:
                self._fail(f"{changed[0]} was changed", "only lr may be")
        rates = {float(group["lr"]) for group in groups}
        if len(rates) > 1:
            raise UsageError(
                f"optimizer.param_groups: have rates of their own ({sorted(rates)}); give them as "
                f"sifr.groups in {self._where}"
            )
        return rates.pop()

    def _fail(self, what: str, remedy: str) -> None:
        raise UsageError(
            f"optimizer.param_groups: {what}, which has no effect: the engine read it from "
            f"{self._where}; {remedy}"
        )
