"""The engine's own decode loop: prefill in chunks, then one forward for each token asked for.

Knows a transformers causal language model and token ids; nothing of text, sessions or stopping: the caller looks
at its stop flag between the steps and closes the generator. Where sampling takes place: on the CPU, in
float32, whatever the model's device and dtype, so that a seed means the same everywhere.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Collection, Iterator, Sequence

import torch
from transformers import DynamicCache

if TYPE_CHECKING:
    from .settings import GenerationSettings


def decode(
    network: Any,
    ids: Sequence[int],
    settings: GenerationSettings,
    *,
    end_ids: Collection[int],
    prefill_chunk: int = 256,
) -> Iterator[int | None]:
    """The answer to the prompt `ids`: None after each prefill chunk but the last, then one int for each new token.

    network: a transformers causal LM in eval mode. settings: max_new_tokens, temperature, top_p, top_k,
    repetition_penalty and seed are read. end_ids: tokens after which the answer is over; the end token is
    yielded too. prefill_chunk: tokens a prefill step. Nothing is computed before it is asked for, so closing
    the generator stops at once. Raises ValueError for an empty prompt.
    """
    if not ids:
        raise ValueError("decode needs at least one prompt token")
    sampler = Sampler(settings, ids)
    cache = {_cache_argument(network): DynamicCache(config=network.config)}
    for start in range(0, len(ids), prefill_chunk):
        logits = _forward(network, ids[start : start + prefill_chunk], cache)
        if start + prefill_chunk < len(ids):
            yield None
    for count in range(1, settings.max_new_tokens + 1):
        token = sampler.pick(logits)
        yield token
        if token in end_ids or count == settings.max_new_tokens:
            return
        logits = _forward(network, [token], cache)


# Inference mode belongs to the thread: held across a yield, it would leak into the caller.
@torch.inference_mode()
def _forward(network: Any, ids: Sequence[int], cache: dict[str, DynamicCache]) -> torch.Tensor:
    """Run `ids` behind what `cache` (by its argument's name) holds.

    Returns the last position's logits: float32 on the CPU, shape (vocabulary,).
    """
    inputs = torch.tensor([list(ids)], device=network.device)
    output = network(input_ids=inputs, use_cache=True, logits_to_keep=1, **cache)
    return output.logits[0, -1].to("cpu", torch.float32)


def _cache_argument(network: Any) -> str:
    """transformers 5.24 calls it `cache`; 5.23 and remote code `past_key_values`, which 5.24 takes with a warning."""
    return "cache" if "cache" in inspect.signature(network.forward).parameters else "past_key_values"


class Sampler:
    """Picks the next token of one answer; order and meaning of the settings as in transformers' `generate`.

    The repetition penalty covers prompt and answer, in greedy picking too; then, unless the temperature is 0
    (greedy), temperature, top_k (0 = off), top_p and a draw. Each answer has its own random generator: its
    text does not depend on who else is active, and torch's global one is not touched. seed None = a fresh one.
    """

    def __init__(self, settings: GenerationSettings, ids: Sequence[int]):
        self._settings = settings
        self._seen = torch.tensor(sorted(set(ids)))
        self._random = torch.Generator()
        if settings.seed is None:
            self._random.seed()
        else:
            self._random.manual_seed(settings.seed)

    @torch.inference_mode()
    def pick(self, logits: torch.Tensor) -> int:
        """The next token for `logits` (float32 on the CPU, shape (vocabulary,)); it counts as seen from then on."""
        scores = self._penalise(logits)
        token = int(scores.argmax()) if self._settings.temperature == 0 else self._draw(scores)
        if self._settings.repetition_penalty != 1 and not (self._seen == token).any():
            self._seen = torch.cat([self._seen, torch.tensor([token])])
        return token

    def _penalise(self, scores: torch.Tensor) -> torch.Tensor:
        """Source: CTRL (Keskar et al. 2019), in the form of transformers' RepetitionPenaltyLogitsProcessor."""
        penalty = self._settings.repetition_penalty
        if penalty == 1:
            return scores
        seen = scores[self._seen]
        return scores.index_copy(0, self._seen, torch.where(seen < 0, seen * penalty, seen / penalty))

    def _draw(self, scores: torch.Tensor) -> int:
        # The best score is moved to 0 first: a tiny temperature then gives -inf for the others, never inf or NaN.
        smallest = torch.finfo(torch.float32).tiny
        scores = (scores - scores.max()) / max(self._settings.temperature, smallest)
        if self._settings.top_k > 0:
            kth_best = scores.topk(min(self._settings.top_k, len(scores))).values[-1]
            scores = scores.masked_fill(scores < kth_best, -torch.inf)
        if self._settings.top_p < 1:
            # Nucleus sampling (Holtzman et al. 2020): the least likely tokens go, up to 1 - top_p together.
            ascending, order = scores.sort()
            dropped = ascending.softmax(-1).cumsum(-1) <= 1 - self._settings.top_p
            dropped[-1] = False
            scores = scores.index_fill(0, order[dropped], -torch.inf)
        return int(torch.multinomial(scores.softmax(-1), 1, generator=self._random))
