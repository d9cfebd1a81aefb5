#!/usr/bin/env python3
"""Writes tests/golden/tokenizer: what Hugging Face `tokenizers` and `transformers` do, for the tokenizer tests.

usage: tokenizer_golden.py [FOLDER]

<name>.json             a small tokenizer.json, trained here ("tales" is the built-in model's and lies with it)
<name>.jsonl            one object a line: "t" a text; "i" its ids, control tokens recognised, with what the
                        post-processor adds; "p" the same with control tokens not recognised, where that differs;
                        "d" the decoded text and "s" the decoded text without control tokens, where they differ from
                        "t"
cuts.jsonl              "rule", a text "t" and where its pieces end, in bytes
code_points.json        hashes of what each rule and NFC do around code points, 4,096 of them a hash: every one where
                        characters are assigned, every 64th in the empty planes
nfc.jsonl               pairs of a text and its normal form
legacy.json             folders without tokenizer.json, as transformers loads them
"""

import json
import pathlib
import random
import sys
import tempfile

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import tokenizer_strings

ROOT = pathlib.Path(__file__).resolve().parents[2]
TALES = ROOT / "src/cli/builtin/tales/tokenizer.json"

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
CAPITALS = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
SMALL = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PREFIX = r"[^\r\n\p{L}\p{N}]?"
PATTERNS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "qwen2": CONTRACTIONS + "|" + PREFIX + r"\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACES,
    "llama3": CONTRACTIONS + "|" + PREFIX + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACES,
    "tekken": PREFIX + CAPITALS + "*" + SMALL + "+|" + PREFIX + CAPITALS + "+" + SMALL + r"*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + SPACES,
    "o200k": PREFIX + CAPITALS + "*" + SMALL + "+" + CONTRACTIONS + "?|" + PREFIX + CAPITALS + "+" + SMALL + "*" + CONTRACTIONS
    + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + SPACES,
}


def split(name):
    return pre_tokenizers.Split(Regex(PATTERNS[name]), "isolated")


RULES = {
    **{name: split(name) for name in PATTERNS},
    "each_digit": pre_tokenizers.Digits(individual_digits=True),
    "runs_of_digits": pre_tokenizers.Digits(individual_digits=False),
}


def byte_level(**flags):
    return pre_tokenizers.ByteLevel(**{"add_prefix_space": False, "use_regex": False, **flags})


def train(pre_tokenizer, size=600, normalizer=None, control=(), **model):
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[AddedToken(c, special=True, normalized=False) for c in control],
        show_progress=False,
    )
    texts = [t for t in tokenizer_strings.TEXTS.values()] + 3 * tokenizer_strings.CODE
    texts += 5 * [tokenizer_strings.TEXTS["English"], "the an and ing tion he she it is was there 100 200 12"]
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def edited(tokenizer, edit):
    data = json.loads(tokenizer.to_str())
    edit(data)
    return Tokenizer.from_str(json.dumps(data))


def template(bos, id):
    return processors.TemplateProcessing(single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, id)])


def make_llama3():
    names = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"]
    tokenizer = train(pre_tokenizers.Sequence([split("llama3"), byte_level()]), control=names)
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template(names[0], 0)])

    def edit(data):  # words that only ignore_merges can give
        data["model"]["ignore_merges"] = True
        del data["model"]["merges"][-120:]

    return edited(tokenizer, edit)


def make_tekken():
    tokenizer = train(pre_tokenizers.Sequence([split("tekken"), byte_level()]), control=["<unk>", "<s>", "</s>", "[INST]"])
    tokenizer.post_processor = template("<s>", 1)
    return tokenizer


def make_o200k():
    tokenizer = train(pre_tokenizers.Sequence([split("o200k"), byte_level()]), normalizer=normalizers.Sequence([normalizers.NFC()]))

    def edit(data):  # the older spelling of merges
        data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]
        del data["model"]["type"]

    return edited(tokenizer, edit), edit


def make_unknown():
    """A vocabulary that lacks some bytes."""
    tokenizer = train(pre_tokenizers.ByteLevel(add_prefix_space=False), control=["<unk>"], unk_token="<unk>", fuse_unk=True)

    def edit(data):
        gone = set("qzX") | {chr(0xC3), chr(0xE3)}
        keep = {p: i for p, i in data["model"]["vocab"].items() if p == "<unk>" or not gone & set(p)}
        data["model"]["vocab"] = keep
        data["model"]["merges"] = [m for m in data["model"]["merges"] if m[0] in keep and m[1] in keep and "".join(m) in keep]

    return edited(tokenizer, edit)


ADDED = [
    ("<x>", {}),
    ("<l>", {"lstrip": True}),
    ("<r>", {"rstrip": True}),
    ("<b>", {"lstrip": True, "rstrip": True}),
    ("word", {"single_word": True}),
    ("<n>", {"normalized": True}),
    ("e\u0301t\u00e9", {"normalized": True}),
    ("\u00e0 la", {"normalized": False}),
    ("\U00030001", {}),
    ("\U00030002", {}),
    ("\U00030002\U00030001", {}),
    ("<|s|>", {"special": True}),
    ("<|s", {}),
    ("s|>", {"special": True, "normalized": True}),
    ("<sl>", {"special": True, "lstrip": True}),
    ("<sr>", {"special": True, "rstrip": True}),
    ("the", {"single_word": True, "rstrip": True}),
    ("\u00fc", {"special": True}),
    ("  ", {}),
    ("\u0120a", {}),
    ("o\u0308o", {"special": True, "normalized": True}),
]


def make_added():
    pre = pre_tokenizers.Sequence([split("qwen2"), byte_level()])
    tokenizer = train(pre, 400, normalizer=normalizers.NFC())
    tokenizer.add_tokens([AddedToken(c, **{"normalized": False, **flags}) for c, flags in ADDED])
    return tokenizer


def added_strings(count):
    r = random.Random(5)
    pieces = [c for c, _ in ADDED] + ["\u00e9te\u0301", "a\u0300 la", " ", "  ", "\n", "\u3000", "a", "the", "word", "s", "_", "1", "\u0301", "é", "|>", "<", "ü", "u\u0308"]
    return ["".join(r.choice(pieces) for _ in range(r.randint(1, 9))) for _ in range(count)]


def make_all():
    o200k, o200k_edit = make_o200k()
    gpt2 = train(pre_tokenizers.ByteLevel(add_prefix_space=False), control=["<|endoftext|>"])
    smollm2 = train(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level(use_regex=True)]), control=["<|endoftext|>"])
    prefixed = train(pre_tokenizers.ByteLevel(add_prefix_space=True), 400)
    pieces_prefixed = train(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=False), byte_level(add_prefix_space=True, use_regex=True)]), 400)
    removed = train(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(PATTERNS["llama3"]), "removed", invert=True), byte_level(add_prefix_space=True)]), 400)
    made = {
        "gpt2": gpt2,
        "llama3": make_llama3(),
        "tekken": make_tekken(),
        "smollm2": smollm2,
        "o200k": o200k,
        "prefixed": prefixed,
        "pieces_prefixed": pieces_prefixed,
        "removed": removed,
        "unknown": make_unknown(),
        "added": make_added(),
    }
    files = {name: json.loads(t.to_str()) for name, t in made.items()}
    o200k_edit(files["o200k"])
    return files


def lines(path, items):
    path.write_text("".join(json.dumps(i, ensure_ascii=False, separators=(",", ":")) + "\n" for i in items))


def expect(tokenizer, text):
    tokenizer.encode_special_tokens = False
    ids = tokenizer.encode(text).ids
    tokenizer.encode_special_tokens = True
    plain = tokenizer.encode(text).ids
    item = {"t": text, "i": ids}
    if plain != ids:
        item["p"] = plain
    decoded = tokenizer.decode(ids, skip_special_tokens=False)
    if decoded != text:
        item["d"] = decoded
    stripped = tokenizer.decode(ids, skip_special_tokens=True)
    if stripped != text:
        item["s"] = stripped
    return item


def write_ids(out):
    all_strings = tokenizer_strings.curated() + tokenizer_strings.long_runs(256) + tokenizer_strings.Random(11).strings(1600)
    tales = Tokenizer.from_file(str(TALES))
    lines(out / "tales.jsonl", [expect(tales, s) for s in all_strings])
    some = [s for s in tokenizer_strings.WHITESPACE + tokenizer_strings.GRAMMAR + tokenizer_strings.EMOJI + tokenizer_strings.CONTROL]
    some += tokenizer_strings.CODE + list(tokenizer_strings.TEXTS.values())[::3] + tokenizer_strings.Random(12).strings(200)
    for name, data in make_all().items():
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        (out / f"{name}.json").write_text(text + "\n")
        tokenizer = Tokenizer.from_str(text)
        strings = added_strings(800) if name == "added" else some
        lines(out / f"{name}.jsonl", [expect(tokenizer, s) for s in strings])


def ends_of(rule, text):
    ends, at = [], 0
    for piece, _ in RULES[rule].pre_tokenize_str(text):
        at += len(piece.encode())
        ends.append(at)
    assert at == len(text.encode())
    return ends


def write_cuts(out):
    strings = tokenizer_strings.WHITESPACE + tokenizer_strings.GRAMMAR + tokenizer_strings.MARKS + tokenizer_strings.CODE
    strings += ["(x):\n", "हिन्दी", "नमस्ते", "a\n\n\n b"] + tokenizer_strings.Random(13).strings(160)
    strings = [s for s in strings if s]
    lines(out / "cuts.jsonl", [{"rule": rule, "t": s, "e": ends_of(rule, s)} for rule in RULES for s in strings])


def fnv(data, state=0xCBF29CE484222325):
    for byte in data:
        state = (state ^ byte) * 0x100000001B3 % (1 << 64)
    return state


def around(c):
    """Texts that show how a character is split and normalised in each company. The tests build the same."""
    x = chr(c)
    return f"{x}a{x}A1{x} {x}{x}\n{x}'{x}e {x}!a\u0301{x}"


def write_code_points(out):
    nfc = normalizers.NFC()
    result = {name: [] for name in [*RULES, "nfc"]}
    for begin in range(0, 0x110000, 4096):
        step = 1 if begin < 0x34000 or begin == 0xE0000 else 64
        chars = [c for c in range(begin, begin + 4096, step) if not 0xD800 <= c < 0xE000]
        text = "".join(map(around, chars))
        for rule in RULES:
            ends = ends_of(rule, text) if text else []
            result[rule].append(f"{fnv(b''.join(e.to_bytes(4, 'little') for e in ends)):016x}")
        result["nfc"].append(f"{fnv(nfc.normalize_str(text).encode()):016x}")
    (out / "code_points.json").write_text(json.dumps(result, separators=(",", ":")) + "\n")


def write_nfc(out):
    nfc = normalizers.NFC()
    r = tokenizer_strings.Random(14)
    strings = tokenizer_strings.MARKS + [r.marked() for _ in range(400)] + ["a" + "\u0301\u0323\u0334" * 20]
    lines(out / "nfc.jsonl", [[s, nfc.normalize_str(s)] for s in strings])


def legacy_cases():
    old = lambda c, **k: {"__type": "AddedToken", "content": c, "lstrip": False, "normalized": True, "rstrip": True, "single_word": False, **k}
    new = lambda c, **k: {"content": c, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True, **k}
    qwen = {"259": new("<x>"), "258": new("<|endoftext|>"), "260": new("<|im_end|>"), "261": new("<t>", special=False, rstrip=True)}
    for cls in ("GPT2Tokenizer", "GPT2TokenizerFast", "Qwen2Tokenizer", "Qwen2TokenizerFast"):
        yield {"tokenizer_class": cls}, {}
    for cls in ("GPT2Tokenizer", "Qwen2Tokenizer"):
        yield {"tokenizer_class": cls, "add_bos_token": True}, {}
        yield {"tokenizer_class": cls, "add_bos_token": True, "bos_token": "<x>", "add_eos_token": True}, {}
        yield {"tokenizer_class": cls, "bos_token": old("<x>"), "eos_token": old("<t>", lstrip=True), "add_bos_token": True}, {}
        yield {"tokenizer_class": cls, "eos_token": "<|im_end|>", "added_tokens_decoder": qwen}, {}
        yield {"tokenizer_class": cls, "eos_token": "<t>", "added_tokens_decoder": qwen, "add_prefix_space": True}, {}
        yield {"tokenizer_class": cls, "bos_token": None, "eos_token": None, "unk_token": None, "pad_token": None}, {}
        yield {"tokenizer_class": cls, "additional_special_tokens": ["<x>", old("<t>")]}, {}
        yield {"tokenizer_class": cls, "added_tokens_decoder": {"270": new("<x>"), "1000": new("<t>"), "300": {"content": "<|im_end|>"}}}, {}
        yield {"tokenizer_class": cls, "added_tokens_decoder": {"259": {"content": "<e\u0301>"}, "260": {"content": "<a\u0301>", "special": True}}}, {}
        yield {"tokenizer_class": cls, "eos_token": "<t>"}, {"added_tokens.json": {"<|im_end|>": 300, "<x>": 259, "<t>": 260}}
        yield {"tokenizer_class": cls}, {"special_tokens_map.json": {"eos_token": old("<t>"), "additional_special_tokens": ["<x>"]}}
        yield {"tokenizer_class": cls, "added_tokens_decoder": {"259": new("<x>")}}, {"special_tokens_map.json": {"eos_token": "<t>"}}
        yield {"tokenizer_class": cls, "pad_token": "<t>", "bos_token": "<x>", "mask_token": "<|im_end|>"}, {}


def write_legacy(out):
    from transformers import AutoTokenizer

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {c: i for i, c in enumerate(alphabet)}
    for piece in ("##", "he", "<|endoftext|>", "\u0120t", "\u0120the", "12"):
        vocab[piece] = len(vocab)
    merges = "#version: 0.2\n# #\nh e\n\u0120 t\n\u0120t he\n1 2\n"
    texts = ["hello ## the 12", "<|endoftext|>a<x> b <t>  c<|im_end|>", "e\u0301\u00e9 I'M x", "", " <t> ", "<e\u0301> <\u00e9> <a\u0301> <\u00e1>"]
    cases = []
    for config, files in legacy_cases():
        with tempfile.TemporaryDirectory() as folder:
            files = {"tokenizer_config.json": config, **files}
            for name, content in {"vocab.json": vocab, **files}.items():
                (pathlib.Path(folder) / name).write_text(json.dumps(content))
            (pathlib.Path(folder) / "merges.txt").write_text(merges)
            tokenizer = AutoTokenizer.from_pretrained(folder)
        cases.append({"files": files, "ids": [tokenizer(t).input_ids for t in texts], "eos": tokenizer.eos_token_id})
    data = {"vocab": vocab, "merges": merges, "texts": texts, "cases": cases}
    (out / "legacy.json").write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n")


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests/golden/tokenizer"
    out.mkdir(parents=True, exist_ok=True)
    for write in (write_ids, write_cuts, write_code_points, write_nfc, write_legacy):
        write(out)


if __name__ == "__main__":
    main()
