"""The text stream: pieces joined are the full decode, and no marker, half character or near miss goes wrong."""

import random

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from tokenizers.decoders import DecodeStream

from engine import text_stream
from engine.text_stream import TextStream

TEXTS = {
    "family": "👨‍👩‍👧‍👦 family, 🏳️‍🌈 and 👍🏽!",
    "chinese": "中文 emoji 😀! 第二句。",
    "thai": "สวัสดีครับ ยินดีต้อนรับ",
    "korean": "한국어 문장입니다.",
    "link": "see https://example.org/a_b?c=%20&d=[1]#top, ok",
    "code": "def f(x):\n\tif x:\n        return  '<' \n\n```\n",
    "real_fffd": "a\ufffd\ufffdb 中\ufffd",
    "added": "<think> a 中\ufffd<think> b",
    "near_miss": "a <b <| im <|im c <|im_en",
}


def byte_level() -> Tokenizer:
    """256 byte tokens, a few merged ones (" " with half an emoji among them) and two special tokens."""
    byte = {value: character for character, value in text_stream._BYTE_OF.items()}
    pieces = [b" ", b"\xf0", b"\x9f", b" \xf0", b" \xf0\x9f", b"\xef", b"\xbf", b"a", b"a\xef", b"a\xef\xbf"]
    spell = lambda data: "".join(byte[value] for value in data)  # noqa: E731
    vocabulary = {token: n for n, token in enumerate([byte[n] for n in range(256)])}
    vocabulary |= {spell(data): 256 + n for n, data in enumerate(p for p in pieces if len(p) > 1)}
    merges = [(b" ", b"\xf0"), (b" \xf0", b"\x9f"), (b"a", b"\xef"), (b"a\xef", b"\xbf")]
    tokenizer = Tokenizer(models.BPE(vocabulary, [(spell(a), spell(b)) for a, b in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(m, special=True) for m in ("<|im_start|>", "<|im_end|>")])
    tokenizer.add_tokens([AddedToken("<think> ", normalized=False)])  # a space is no byte-level character
    tokenizer.encode_special_tokens = True
    return tokenizer


def byte_fallback() -> Tokenizer:
    """Llama's kind: ASCII and ▁ as tokens, all else as `<0xNN>`, the first space of a text taken away."""
    vocabulary = {"<unk>": 0, "<s>": 1, "</s>": 2, **{f"<0x{n:02X}>": 3 + n for n in range(256)}}
    for character in ["▁", "▁▁", "▁a", "\ufffd", *map(chr, range(33, 127))]:
        vocabulary[character] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocabulary, [("▁", "▁"), ("▁", "a")], unk_token="<unk>", byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    llama = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(llama)
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    return tokenizer


TOKENIZERS = {"byte_level": byte_level(), "byte_fallback": byte_fallback()}


@pytest.fixture(params=TOKENIZERS)
def tokenizer(request) -> Tokenizer:
    return TOKENIZERS[request.param]


def encode(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False).ids


def end_id(tokenizer: Tokenizer) -> int:
    return tokenizer.token_to_id("<|im_end|>") or tokenizer.token_to_id("</s>")


def run(tokenizer: Tokenizer, ids: list[int], end_ids=(), stop=()) -> tuple[list[str], TextStream]:
    stream = TextStream(tokenizer, end_ids, stop)
    return [stream.push(i) for i in ids] + [stream.flush()], stream


def byte_ids(tokenizer: Tokenizer, data: bytes) -> list[int]:
    """Ids that spell `data` byte by byte, which encoding would not do."""
    byte = {value: character for character, value in text_stream._BYTE_OF.items()}
    fallback = tokenizer.token_to_id("<0x00>") is not None
    return [tokenizer.token_to_id(f"<0x{n:02X}>" if fallback else byte[n]) for n in data]


@pytest.mark.parametrize("name", TEXTS)
def test_pieces_joined_equal_the_full_decode(tokenizer, name):
    """Full text, no character split, no U+FFFD of ours (textgen 1603)."""
    ids = encode(tokenizer, TEXTS[name])
    pieces, stream = run(tokenizer, ids, end_ids=[end_id(tokenizer)], stop=["<|im_end|>", "```\n#"])
    assert "".join(pieces) == tokenizer.decode(ids) == TEXTS[name]
    if "\ufffd" not in TEXTS[name]:
        assert not any("\ufffd" in piece for piece in pieces)
    assert not stream.done


@pytest.mark.parametrize("name", TEXTS)
def test_a_cut_anywhere_shows_a_prefix_and_hides_only_the_half_character(tokenizer, name):
    """At every cut: shown + held is all the whole characters so far, and flush gives exactly what was held."""
    ids = encode(tokenizer, TEXTS[name])
    stop = ["<|im_end|>", "中文字"]
    for cut in range(len(ids) + 1):
        stream = TextStream(tokenizer, [], stop)
        shown = "".join(stream.push(i) for i in ids[:cut])
        whole = shown + stream.held
        rest = whole_part(ids[:cut], tokenizer)
        assert whole == rest and TEXTS[name].startswith(whole)
        assert stream.held == "" or any(s.startswith(stream.held) for s in stop)
        held = stream.held
        assert stream.flush() == held
        assert stream.held == "" and stream.push(ids[0]) == "" and stream.flush() == ""


def whole_part(ids: list[int], tokenizer: Tokenizer) -> str:
    """What a cut answer should show: its bytes without an unfinished last character, an independent way."""
    data = b""
    for i in ids:
        token = tokenizer.id_to_token(i)
        if token.startswith("<0x"):
            data += bytes([int(token[3:5], 16)])
        elif tokenizer.token_to_id("<0x00>") is None:
            data += token.encode() if " " in token else bytes(text_stream._BYTE_OF[c] for c in token)
        else:
            data += token.replace("▁", " ").encode()
    text = data.decode(errors="ignore")
    return text.removeprefix(" ") if tokenizer.token_to_id("<0x00>") else text


def test_nothing_is_held_without_a_stop_string_in_sight(tokenizer):
    """A real U+FFFD and the letter before half a character come out at once, though DecodeStream waits."""
    stream = TextStream(tokenizer, [], ["<|"])
    ids = encode(tokenizer, "b") + byte_ids(tokenizer, "\ufffd\ufffd".encode())
    assert "".join(stream.push(i) for i in ids) == "b\ufffd\ufffd"
    level = TOKENIZERS["byte_level"]
    stream = TextStream(level, [])
    assert level.id_to_token(encode(level, "b 😀")[1]) == "ĠðŁ"
    assert [stream.push(i) for i in encode(level, "b 😀")] == ["b", " ", "", "😀"]


def test_a_cut_in_mid_emoji_drops_the_half_character(tokenizer):
    """transformers' streamer prints U+FFFD here."""
    for missing in (1, 2, 3):
        pieces, _ = run(tokenizer, byte_ids(tokenizer, "ok 😀".encode()[:-missing]))
        assert "".join(pieces) == "ok "


def test_a_real_fffd_at_the_end_is_kept(tokenizer):
    """Deleting every U+FFFD is wrong too: the model may mean it."""
    for ending in ("ok\ufffd", "\ufffd", "a\ufffd\ufffd"):
        assert "".join(run(tokenizer, byte_ids(tokenizer, ending.encode()))[0]) == ending
        assert "".join(run(tokenizer, byte_ids(tokenizer, ending.encode() + b"\xf0\x9f"))[0]) == ending
        assert "".join(run(tokenizer, byte_ids(tokenizer, b"\x80" + ending.encode()[-3:]))[0]) == "\ufffd\ufffd"


def test_special_tokens_do_not_part_a_character(tokenizer):
    """A special token between the bytes of a character is skipped, as in the full decode."""
    start = tokenizer.token_to_id("<|im_start|>") or tokenizer.token_to_id("<s>")
    data = byte_ids(tokenizer, "中".encode())
    ids = [start, *data[:1], start, *data[1:], start, *data[:2], start]
    assert "".join(run(tokenizer, ids)[0]) == "中"
    assert "".join(run(tokenizer, [start, 10**6, *data])[0]) == "中"


def test_an_end_id_ends_the_answer_and_gives_up_what_was_held(tokenizer):
    stream = TextStream(tokenizer, [end_id(tokenizer)], ["<|x"])
    shown = [stream.push(i) for i in encode(tokenizer, "hi <|")]
    assert "".join(shown) == "hi " and stream.held == "<|" and not stream.done
    assert stream.push(end_id(tokenizer)) == "<|" and stream.done
    assert stream.push(encode(tokenizer, "b")[0]) == "" == stream.flush() == stream.held


@pytest.mark.parametrize("before", ["world", "", "中文 😀", "a\n"])
def test_an_end_marker_spelled_in_ordinary_tokens_is_not_shown(tokenizer, before):
    """`<|im` then `_start|>` were shown to users (text-generation-inference 1254)."""
    marker = tokenizer.decode([end_id(tokenizer)], skip_special_tokens=False)
    ids = byte_ids(tokenizer, (before + marker + " and more").encode())
    assert end_id(tokenizer) not in ids
    pieces, stream = run(tokenizer, ids, end_ids=[end_id(tokenizer)])
    assert "".join(pieces) == before and stream.done


def test_a_marker_in_large_pieces_is_not_shown():
    """The report's own pieces: "wor", "ld<|im", "_end|>"."""
    words = Tokenizer(models.WordLevel({w: n for n, w in enumerate(["wor", "ld<|im", "_end|>", "a <", "b", "_st"])}))
    words.decoder = decoders.Fuse()
    stream = TextStream(words, [], ["<|im_end|>"])
    assert [stream.push(i) for i in (0, 1)] == ["wor", "ld"] and stream.held == "<|im"
    assert stream.push(2) == "" and stream.done and stream.held == ""
    stream = TextStream(words, [], ["<|im_end|>"])
    assert [stream.push(i) for i in (0, 1, 5)] == ["wor", "ld", "<|im_st"] and not stream.done


def test_a_near_miss_comes_out_in_full_also_when_stopped_there():
    words = Tokenizer(models.WordLevel({"a <": 0, "b": 1}))
    words.decoder = decoders.Fuse()
    stream = TextStream(words, [], ["<|im_end|>"])
    assert stream.push(0) == "a " and stream.held == "<"
    assert stream.push(1) == "<b" and stream.held == "" and stream.flush() == ""
    assert run(words, [0], stop=["<|im_end|>"])[0] == ["a ", "<"]


@pytest.mark.parametrize(
    ("text", "stop", "shown"),
    [
        ("one STOPPED two", ["STOP", "STOPPED"], "one "),
        ("one STOPPED two", ["STOPPED", "STOP"], "one "),
        ("xabcd", ["abcd", "c"], "xab"),  # "c" is whole first, whatever the tokens
        ("xabcd", ["bc", "abc"], "x"),
        ("aaab", ["aab"], "a"),
        ("ababac", ["abac"], "ab"),
        ("no stop here", ["", "absent"], "no stop here"),
        ("end\n\nHuman: hi", ["\n\nHuman:"], "end"),
        ("喂 中文字 x", ["中文字"], "喂 "),
    ],
)
def test_everything_from_the_first_whole_stop_string_is_cut(tokenizer, text, stop, shown):
    for ids in (encode(tokenizer, text), byte_ids(tokenizer, text.encode())):
        pieces, stream = run(tokenizer, ids, stop=stop)
        assert "".join(pieces) == shown
        assert stream.done is (shown != text)


def test_one_piece_cuts_where_many_pieces_cut():
    words = Tokenizer(models.WordLevel({"xabcd": 0}))
    words.decoder = decoders.Fuse()
    assert run(words, [0], stop=["abcd", "c"])[0] == ["xab", ""]


def test_a_stop_string_may_lie_across_many_pieces(tokenizer):
    stop = "<tool_call>{" + "x" * 300 + "}"
    ids = byte_ids(tokenizer, ("go " + stop + "tail").encode())
    stream = TextStream(tokenizer, [], [stop])
    shown = ""
    for count, token_id in enumerate(ids):
        shown += stream.push(token_id)
        assert shown == "go "[: count + 1] and len(stream.held) < len(stop)
    assert stream.done and stream.flush() == ""


def test_random_tokens_keep_every_promise():
    """Seeded fuzz: any byte tokens, specials and stop strings; at every moment nothing is lost or hidden."""
    tokenizer = TOKENIZERS["byte_level"]
    chance = random.Random(7)
    alphabet = byte_ids(tokenizer, "<|ab \n".encode() + "中😀\ufffd".encode() + b"\x80\xff\xc3")
    extra = [tokenizer.token_to_id("<|im_start|>"), *range(256, 260)]
    for _ in range(400):
        ids = [chance.choice(alphabet + extra) for _ in range(chance.randint(1, 40))]
        stop = ["".join(chance.choices("<|ab中", k=chance.randint(1, 4))) for _ in range(chance.randint(0, 3))]
        full = tokenizer.decode(ids)
        starts = [(full.find(s) + len(s), full.find(s)) for s in stop if s in full]
        expected = full[: min(starts)[1]] if starts else full
        stream, shown = TextStream(tokenizer, [], stop), ""
        for token_id in ids:
            shown += stream.push(token_id)
            assert expected.startswith(shown)
            assert stream.held == "" or any(s.startswith(stream.held) and s != stream.held for s in stop)
            assert full.startswith(shown + stream.held)
        end = shown + stream.flush()
        assert end == expected if starts else end.rstrip("\ufffd") == expected.rstrip("\ufffd")
        assert stream.done is bool(starts)


def test_random_text_survives_byte_fallback():
    """Seeded: whole characters in random order, spaces at the start and between included."""
    tokenizer = TOKENIZERS["byte_fallback"]
    chance = random.Random(8)
    for _ in range(300):
        text = "".join(chance.choices(list("  ab<é中😀\ufffd\n\t"), k=chance.randint(1, 20)))
        ids = encode(tokenizer, text)
        assert "".join(run(tokenizer, ids, stop=["ab<"])[0]) == tokenizer.decode(ids).split("ab<")[0]


def test_a_broken_decode_stream_loses_nothing():
    """With byte tokens, "é" + half a character + "b" makes DecodeStream raise now and for good."""
    tokenizer = TOKENIZERS["byte_fallback"]
    before, after = encode(tokenizer, "x a"), encode(tokenizer, "y a a")
    ids = before + byte_ids(tokenizer, b"\xc3\xa9\xe4") + after + byte_ids(tokenizer, "中".encode()) + after
    assert "".join(run(tokenizer, ids)[0]) == "x aé\ufffd y a a中 y a a"


class Mortal:
    """A DecodeStream that breaks for good after `life` steps."""

    life = 0
    made = 0

    def __init__(self, ids=None, skip_special_tokens=False):
        self.inner = DecodeStream(ids=ids or [], skip_special_tokens=skip_special_tokens)
        self.left, Mortal.made = self.life, Mortal.made + 1

    def step(self, tokenizer, token_id):
        self.left -= 1
        if self.left < 0:
            raise Exception("Invalid prefix encountered")
        return self.inner.step(tokenizer, token_id)


@pytest.mark.parametrize("life", [8, 2, 0])
@pytest.mark.parametrize("name", TEXTS)
def test_a_decode_stream_that_breaks_anywhere_loses_nothing(tokenizer, name, life, monkeypatch):
    """Some tokenizers break DecodeStream in ways unknown here (vLLM 18840), if need be at every step."""
    monkeypatch.setattr(text_stream, "DecodeStream", Mortal)
    monkeypatch.setattr(Mortal, "life", life)
    ids = encode(tokenizer, TEXTS[name])
    pieces, _ = run(tokenizer, ids)
    assert "".join(pieces) == TEXTS[name]
    assert "\ufffd" in TEXTS[name] or not any("\ufffd" in piece for piece in pieces)


def test_after_a_break_the_new_decode_stream_is_used(tokenizer, monkeypatch):
    """Going on without one would decode the whole answer again at each token."""
    monkeypatch.setattr(text_stream, "DecodeStream", Mortal)
    monkeypatch.setattr(Mortal, "life", 10)
    monkeypatch.setattr(Mortal, "made", 0)
    assert "".join(run(tokenizer, encode(tokenizer, "b" * 100))[0]) == "b" * 100
    assert 10 <= Mortal.made <= 13
