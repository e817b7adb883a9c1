"""The decode loop: token for token what transformers' `generate` gives, one forward a token, nothing leaked."""

import warnings
from itertools import zip_longest

import pytest

pytestmark = pytest.mark.full

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from engine.decoding import Sampler, decode  # noqa: E402
from engine.settings import GenerationSettings  # noqa: E402

VOCABULARY = 300
LENGTHS = (1, 5, 300, 700)


@pytest.fixture(scope="module")
def network():
    """A tiny random Llama in fp32, with weights large enough that its texts vary."""
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=2048, initializer_range=0.3,
        bos_token_id=None, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return transformers.LlamaForCausalLM(config).eval()


def prompt(length: int) -> list[int]:
    return torch.randint(VOCABULARY, (length,), generator=torch.Generator().manual_seed(length)).tolist()


def tokens(network, ids, end_ids=(), **settings) -> list[int]:
    steps = decode(network, ids, GenerationSettings(**settings), end_ids=end_ids)
    return [step for step in steps if step is not None]


def reference(network, ids, **options) -> list[int]:
    """What `generate` answers."""
    options = {"do_sample": False, "top_k": None, "top_p": None, "temperature": None} | options
    output = network.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), **options)
    return output[0, len(ids):].tolist()


@pytest.fixture
def forwards(network):
    """The number of input tokens of each forward so far."""
    seen = []
    hook = network.register_forward_pre_hook(
        lambda module, args, kwargs: seen.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    yield seen
    hook.remove()


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_greedy_text_equals_generate(network, length, penalty):
    ids = prompt(length)
    for count in (1, 2, 40):
        expected = reference(network, ids, max_new_tokens=count, repetition_penalty=penalty)
        assert tokens(network, ids, max_new_tokens=count, repetition_penalty=penalty) == expected
    assert len(set(expected)) > 5, "the model repeats itself: this test would see little"


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_an_end_token_ends_the_answer_and_is_yielded(network, length, penalty):
    ids = prompt(length)
    free = reference(network, ids, max_new_tokens=30, repetition_penalty=penalty)
    for end in ({free[0]}, {free[17], VOCABULARY - 1}, {free[29]}):
        expected = reference(network, ids, max_new_tokens=30, repetition_penalty=penalty, eos_token_id=sorted(end))
        got = tokens(network, ids, end, max_new_tokens=30, repetition_penalty=penalty)
        assert got == expected and got[-1] in end


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0.7, "top_k": 50, "top_p": 0.9},
        {"temperature": 1.5, "top_k": 0, "top_p": 0.6, "repetition_penalty": 1.3},
        {"temperature": 2.0, "top_k": 7, "top_p": 1.0},
        {"temperature": 3.0, "top_k": 20, "top_p": 0.8, "repetition_penalty": 0.8},
    ],
)
def test_sampled_text_equals_generate_with_the_same_seed(network, options):
    """On the CPU transformers draws from the global generator; seeded alike it must draw the same tokens."""
    for seed in range(3):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            expected = reference(network, prompt(9), max_new_tokens=60, do_sample=True, **options)
        assert tokens(network, prompt(9), max_new_tokens=60, seed=seed, **options) == expected


def test_a_seed_fixes_the_text_whoever_else_is_active(network):
    """Two answers, a step in turn, and each is the text it is alone."""
    options = {"temperature": 2.0, "max_new_tokens": 25}
    alone = [tokens(network, prompt(300), seed=1, **options), tokens(network, prompt(5), seed=2, **options)]
    assert alone[0] == tokens(network, prompt(300), seed=1, **options)
    assert alone[0] != tokens(network, prompt(300), seed=3, **options)
    both = [
        decode(network, prompt(300), GenerationSettings(seed=1, **options), end_ids=()),
        decode(network, prompt(5), GenerationSettings(seed=2, **options), end_ids=()),
    ]
    steps = list(zip_longest(*both))
    assert [[step[n] for step in steps if step[n] is not None] for n in (0, 1)] == alone


def test_without_a_seed_texts_differ(network):
    options = {"temperature": 5.0, "top_k": 0, "max_new_tokens": 20}
    assert tokens(network, prompt(5), **options) != tokens(network, prompt(5), **options)


@pytest.mark.parametrize("seed", [None, 5])
def test_the_global_random_state_is_not_touched(network, seed):
    before = torch.get_rng_state()
    tokens(network, prompt(5), temperature=1.0, max_new_tokens=5, seed=seed)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    "options",
    [{"temperature": 1.0, "top_k": 1}, {"temperature": 1e-9, "top_k": 0}, {"temperature": 1e-300},
     {"temperature": 1.0, "top_p": 0.0}, {"temperature": 10, "top_k": 10**6, "top_p": 0}],
)  # fmt: skip
def test_narrow_sampling_is_greedy(network, options):
    """One token kept, or a temperature that divides by almost nothing: no NaN, no infinity."""
    expected = tokens(network, prompt(5), max_new_tokens=20)
    assert tokens(network, prompt(5), max_new_tokens=20, seed=0, **options) == expected


def test_only_kept_tokens_are_drawn():
    """top_k and top_p by hand: probabilities 0.5, 0.3, 0.15, 0.05."""
    logits = torch.tensor([0.15, 0.5, 0.05, 0.3]).log()
    drawn = lambda **options: {  # noqa: E731
        sampler.pick(logits) for sampler in [Sampler(GenerationSettings(seed=0, **options), [0])] for _ in range(300)
    }
    assert drawn(temperature=1.0, top_k=0) == {0, 1, 2, 3} == drawn(temperature=1.0, top_k=10**6)
    assert drawn(temperature=1.0, top_k=3) == {0, 1, 3}
    assert drawn(temperature=1.0, top_k=0, top_p=0.7) == {1, 3}
    assert drawn(temperature=1.0, top_k=0, top_p=0.4) == {1}
    assert drawn(temperature=10.0, top_k=0, top_p=0.7) == {0, 1, 3}  # the temperature comes before top_p
    assert torch.equal(logits, torch.tensor([0.15, 0.5, 0.05, 0.3]).log())


def test_the_repetition_penalty_lowers_scores_of_either_sign():
    """Dividing a score below 0 would raise it."""
    settings = GenerationSettings(repetition_penalty=1.3)
    assert Sampler(settings, [0]).pick(torch.tensor([-1.0, -1.1])) == 1
    logits = torch.tensor([1.1, 1.0])
    assert Sampler(settings, [0]).pick(logits) == 1
    assert torch.equal(logits, torch.tensor([1.1, 1.0])), "the caller's logits are not changed"


def test_a_long_prompt_is_read_in_chunks(network, forwards):
    """One None after each chunk but the last, then tokens; only the last chunk may be short."""
    steps = list(decode(network, prompt(700), GenerationSettings(max_new_tokens=3), end_ids=()))
    assert [step is None for step in steps] == [True, True, False, False, False]
    assert forwards == [256, 256, 188, 1, 1]
    forwards.clear()
    steps = list(decode(network, prompt(20), GenerationSettings(max_new_tokens=1), end_ids=(), prefill_chunk=10))
    assert forwards == [10, 10] and [step is None for step in steps] == [True, False]


def test_nothing_is_computed_before_it_is_asked_for(network, forwards):
    """The stop flag is looked at between the steps: a step ahead would be work for nobody."""
    steps = decode(network, prompt(300), GenerationSettings(max_new_tokens=10), end_ids=())
    assert forwards == []
    for count in range(1, 6):
        next(steps)
        assert len(forwards) == count
    steps.close()
    assert len(forwards) == 5
    ended = tokens(network, prompt(5), max_new_tokens=1)
    forwards.clear()
    assert tokens(network, prompt(5), ended, max_new_tokens=10) == ended and forwards == [5]


def test_a_round_closed_in_prefill_computes_nothing_more(network, forwards):
    steps = decode(network, prompt(700), GenerationSettings(), end_ids=())
    assert next(steps) is None
    steps.close()
    assert forwards == [256]


def test_only_the_last_position_becomes_logits(network):
    shapes = []
    hook = network.lm_head.register_forward_hook(lambda module, args, output: shapes.append(output.shape[1]))
    tokens(network, prompt(300), max_new_tokens=3)
    hook.remove()
    assert shapes == [1, 1, 1, 1]


def test_the_callers_grad_mode_is_left_alone(network):
    """A mode held across a yield would leak into the caller's thread."""
    for enabled in (True, False):
        with torch.set_grad_enabled(enabled):
            options = GenerationSettings(max_new_tokens=4, temperature=1.0, repetition_penalty=1.2)
            for _ in decode(network, prompt(300), options, end_ids=()):
                assert torch.is_grad_enabled() is enabled and not torch.is_inference_mode_enabled()
            assert torch.is_grad_enabled() is enabled
    weights = torch.ones(2, requires_grad=True)
    assert (weights * 2).requires_grad


def test_no_gradients_are_recorded(network):
    """Nothing of one step's graph is kept: inside the forward, inference mode is on."""
    modes = []
    hook = network.register_forward_pre_hook(lambda module, args: modes.append(torch.is_inference_mode_enabled()))
    tokens(network, prompt(5), max_new_tokens=2)
    hook.remove()
    assert modes == [True, True]


def test_the_loop_is_silent(network, capfd):
    """transformers 5.24 renames the cache argument and warns at the old name."""
    transformers.utils.logging.get_logger("transformers").warning_once.__func__.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tokens(network, prompt(5), max_new_tokens=2)
    assert capfd.readouterr().err == ""


def test_half_precision_weights_work(network):
    half = transformers.LlamaForCausalLM(network.config).to(torch.bfloat16).eval()
    assert len(tokens(half, prompt(300), max_new_tokens=4, temperature=1.0, seed=0)) == 4


def test_an_empty_prompt_is_refused(network):
    with pytest.raises(ValueError, match="at least one"):
        tokens(network, [])
