#!/usr/bin/env python3
"""Writes small checkpoints of torch.save and what their models compute, into tests/golden/torch.

    pip install torch numpy tokenizers
    pip download --no-deps reasoning-from-scratch          # unpack it and put it on PYTHONPATH; else no "book"
    tools/reference/torch_golden.py [course] [book] [tensors] [seeds]

course: the language model of Stanford's CS336, written here from the formulas of its first assignment (RMSNorm, rotary
positions on neighbouring elements, causal attention, SwiGLU, no biases): one model in several forms, a tied one, and a
vocabulary as pickles and as texts. book: the Qwen3 of "Build a Reasoning Model (From Scratch)", computed by that book's
own package. tensors: a small file of tensors of several types and layouts. seeds: inputs for tests/fuzz.

expected.json:

    text, prompt          a text and its ids, by Hugging Face tokenizers
    reply                 its greedy continuation, within the context
    slide                 that of the loop that feeds the last context_length tokens anew at each step
    columns, logits, logsumexp    of the prompt and reply: a row of the listed columns for each position

Values are computed in double precision over weights that bfloat16 holds exactly, so that one expectation serves files
of all types. Seeds are chosen so that no greedy choice is nearer than MARGIN.
"""

import argparse
import datetime
import json
import math
import pathlib
import pickle
import shutil
import sys
import zipfile

import numpy
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "torch"
TEXT = "The miller's café: 12 naïve cats sat, and the cat ran."
CORPUS = "the cat sat and the rat ran; café naïve café. The the and and cats rats naïve then there " * 3
END = "<|endoftext|>"
MERGES = 24
MARGIN = 0.12
REPLY = 6
SLIDE = 60
CONFIG = dict(
    vocab_size=256 + MERGES + 1, context_length=48, d_model=24, num_layers=2, num_heads=3, d_ff=40, rope_theta=10000.0
)


# --- The course's model -------------------------------------------------------------------------------------------


class RMSNorm(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + self.eps) * self.weight


class Linear(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, columns))

    def forward(self, x):
        return torch.einsum("oi,...i->...o", self.weight, x)


class Embedding(nn.Module):
    def __init__(self, count, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(count, width))


class SwiGLU(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.w1, self.w2, self.w3 = Linear(inner, width), Linear(width, inner), Linear(inner, width)

    def forward(self, x):
        gate = self.w1(x)
        return self.w2(gate * torch.sigmoid(gate) * self.w3(x))


class Rope(nn.Module):
    """Element 2i and 2i+1 of a head are turned by position / theta^(2i/d)."""

    def __init__(self, theta, size, positions):
        super().__init__()
        angles = torch.outer(torch.arange(positions).float(), 1.0 / theta ** (torch.arange(0, size, 2).float() / size))
        self.register_buffer("cos_cached", angles.cos())
        self.register_buffer("sin_cached", angles.sin())

    def forward(self, x):
        cos, sin = self.cos_cached[: x.shape[-2]], self.sin_cached[: x.shape[-2]]
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, width, heads, theta, positions):
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj = Linear(width, width), Linear(width, width)
        self.v_proj, self.output_proj = Linear(width, width), Linear(width, width)
        self.rope = Rope(theta, width // heads, positions)

    def forward(self, x):
        projections = (self.q_proj, self.k_proj, self.v_proj)
        q, k, v = (project(x).unflatten(-1, (self.heads, -1)).transpose(0, 1) for project in projections)
        scores = self.rope(q) @ self.rope(k).transpose(1, 2) / math.sqrt(q.shape[-1])
        seen = torch.ones(x.shape[0], x.shape[0]).tril().bool()
        weights = scores.masked_fill(~seen, -math.inf).softmax(-1)
        return self.output_proj((weights @ v).transpose(0, 1).flatten(1))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln1, self.ln2 = RMSNorm(c["d_model"]), RMSNorm(c["d_model"])
        self.attn = Attention(c["d_model"], c["num_heads"], c["rope_theta"], c["context_length"])
        self.ffn = SwiGLU(c["d_model"], c["d_ff"])

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.ffn(self.ln2(x))


class CourseModel(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.token_embeddings = Embedding(c["vocab_size"], c["d_model"])
        self.layers = nn.ModuleList([Block(c) for _ in range(c["num_layers"])])
        self.ln_final = RMSNorm(c["d_model"])
        self.lm_head = Linear(c["vocab_size"], c["d_model"])

    def forward(self, ids):
        x = self.token_embeddings.weight[ids]
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.ln_final(x))


# --- Its vocabulary ------------------------------------------------------------------------------------------------


def alphabet():
    """GPT-2's letter for each byte."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in visible}
    for byte in range(256):
        if byte not in letters:
            letters[byte] = chr(256 + len(letters) - len(visible))
    return letters


def train():
    """Byte pair merges of CORPUS, most frequent first, the greater pair where two are equal."""
    words = {}
    for word in CORPUS.split():
        word = tuple(bytes([b]) for b in (" " + word).encode())
        words[word] = words.get(word, 0) + 1
    vocab = {0: END.encode(), **{1 + b: bytes([b]) for b in range(256)}}
    merges = []
    while len(merges) < MERGES:
        pairs = {}
        for word, count in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] = pairs.get(pair, 0) + count
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        vocab[len(vocab)] = best[0] + best[1]
        merged = {}
        for word, count in words.items():
            out, i = [], 0
            while i < len(word):
                step = 2 if word[i : i + 2] == best else 1
                out.append(b"".join(word[i : i + step]))
                i += step
            merged[tuple(out)] = merged.get(tuple(out), 0) + count
        words = merged
    return vocab, merges


def hf_tokenizer(vocab, merges):
    letters = alphabet()

    def spell(piece):
        return "".join(letters[b] for b in piece)

    pieces = {spell(piece): i for i, piece in vocab.items() if piece != END.encode()}
    tokenizer = Tokenizer(models.BPE(vocab={**pieces, END: 0}, merges=[(spell(a), spell(b)) for a, b in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(END, special=True)])
    return tokenizer, spell


def write_vocabulary(folder, vocab, merges, spell):
    for name, protocol in (("", 4), ("_protocol2", 2)):
        (folder / f"vocab{name}.pkl").write_bytes(pickle.dumps(vocab, protocol=protocol))
        (folder / f"merges{name}.pkl").write_bytes(pickle.dumps(merges, protocol=protocol))
    (folder / "vocab.json").write_text(json.dumps({spell(piece): i for i, piece in vocab.items()}) + "\n")
    (folder / "merges.txt").write_text("".join(f"{spell(a)} {spell(b)}\n" for a, b in merges))


# --- Expectations --------------------------------------------------------------------------------------------------


def randomise(model, seed):
    """Spreads values so that attention, gates and logits are far from uniform; bfloat16 holds them exactly."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if parameter.dim() == 1:
            value = 1.2 + 0.4 * noise
        elif "emb" in name or "head" in name:
            value = 0.7 * noise
        else:
            value = noise * 1.3 / math.sqrt(parameter.shape[-1])
        parameter.data = value.bfloat16().float()


@torch.no_grad()
def greedy(compute, prompt, count, window):
    """Nothing if a best logit leads the second by less than MARGIN."""
    ids = list(prompt)
    for _ in range(count):
        top = compute(ids[-window:])[-1].topk(2)
        if top.values[0] - top.values[1] < MARGIN:
            return None
        ids.append(int(top.indices[0]))
    return ids[len(prompt) :]


def interesting(reply, end):
    return reply and end not in reply and len(set(reply)) > 4


@torch.no_grad()
def expectation(compute, prompt, reply, more):
    values = compute(prompt + reply).double()
    columns = sorted(torch.randperm(values.shape[1], generator=torch.Generator().manual_seed(1))[:8].tolist())
    return {
        "text": TEXT,
        "prompt": prompt,
        "reply": reply,
        **more,
        "columns": columns,
        "logits": [[round(x, 5) for x in row] for row in values[:, columns].tolist()],
        "logsumexp": [round(x, 5) for x in values.logsumexp(-1).tolist()],
    }


def write_json(path, data):
    path.write_text(json.dumps(data, separators=(",", ":")) + "\n")


def double_copy(model, make):
    copy = make()
    copy.load_state_dict(model.state_dict())
    return copy.double()


def course_model(prompt, tied):
    for seed in range(1, 5000):
        model = CourseModel(CONFIG)
        randomise(model, seed)
        if tied:
            model.lm_head.weight = model.token_embeddings.weight
        exact = double_copy(model, lambda: CourseModel(CONFIG))
        reply = greedy(exact, prompt, REPLY, 10**9)
        if not interesting(reply, 0):
            continue
        slide = greedy(exact, prompt, SLIDE, CONFIG["context_length"])
        if interesting(slide, 0):
            assert len(prompt) + SLIDE > CONFIG["context_length"] > len(prompt) + REPLY
            print("tied" if tied else "course", "seed", seed, flush=True)
            return model, expectation(exact, prompt, reply, {"slide": slide})
    raise SystemExit("no seed gives clear greedy choices")


class Odd:
    """A class that a reader without this script does not have."""

    def __init__(self):
        self.when = datetime.datetime(2026, 1, 1)


def optimizer_state(model):
    optimizer = torch.optim.AdamW([model.ln_final.weight], lr=1e-3)
    model.ln_final.weight.grad = torch.ones_like(model.ln_final.weight)
    values = model.ln_final.weight.data.clone()
    optimizer.step()
    model.ln_final.weight.data.copy_(values)
    return optimizer.state_dict()


def write_course():
    folder = OUT / "course"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    vocab, merges = train()
    tokenizer, spell = hf_tokenizer(vocab, merges)
    write_vocabulary(folder, vocab, merges, spell)
    prompt = tokenizer.encode(TEXT).ids

    model, expected = course_model(prompt, tied=False)
    write_json(folder / "expected.json", expected)
    state = model.state_dict()
    torch.save(
        {
            "model_state_dict": state,
            "optimizer_state_dict": optimizer_state(model),
            "iteration": 1000,
            "args": argparse.Namespace(lr=1e-3),
            "odd": Odd(),
            "loss": numpy.float64(2.5),
            "model_config": CONFIG,
        },
        folder / "ckpt.pt",
    )
    # As torch.compile within data parallelism leaves it, with other words for the same settings and no buffers.
    short = {key: value.bfloat16() for key, value in state.items() if "_cached" not in key}
    names = dict(zip(CONFIG, ("n_vocab", "block_size", "n_embd", "n_layers", "n_heads", "dff", "theta")))
    torch.save(
        {
            "model": {"module._orig_mod." + key: value for key, value in short.items()},
            "config": {"lr": 1e-3, "model": {names[key]: value for key, value in CONFIG.items()}},
        },
        folder / "compiled.pt",
        pickle_protocol=4,
    )
    # A bare state dict, some of its matrices views of others: transposed, and rows within one storage.
    bare = {key: value.half() for key, value in short.items()}
    for key in ("layers.0.attn.q_proj.weight", "layers.1.ffn.w2.weight"):
        bare[key] = bare[key].t().contiguous().t()
    together = torch.cat([bare[f"layers.0.attn.{name}_proj.weight"] for name in "kv"])
    bare["layers.0.attn.k_proj.weight"], bare["layers.0.attn.v_proj.weight"] = together.split(CONFIG["d_model"])
    torch.save({key: nn.Parameter(value) for key, value in bare.items()}, folder / "bare.pt", pickle_protocol=5)

    model, expected = course_model(prompt, tied=True)
    write_json(folder / "expected_tied.json", expected)
    state = {key: value for key, value in model.state_dict().items() if "_cached" not in key}
    shared = state["token_embeddings.weight"].bfloat16()
    short = {key: value.bfloat16() for key, value in state.items()}
    short["token_embeddings.weight"] = short["lm_head.weight"] = shared
    torch.save({"state_dict": short, "model_config": CONFIG}, folder / "tied.pt")


# --- The book's model ----------------------------------------------------------------------------------------------


def write_book():
    from model_golden import make_tokenizer
    from reasoning_from_scratch.qwen3 import Qwen3Model, Qwen3Tokenizer

    folder = OUT / "book"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make_tokenizer().save(str(folder / "tokenizer-base.json"), pretty=False)
    tokenizer = Qwen3Tokenizer(folder / "tokenizer-base.json")
    end = tokenizer.eos_token_id
    prompt = tokenizer.encode(TEXT)
    config = {
        "vocab_size": 272,
        "context_length": 40960,
        "emb_dim": 24,
        "n_heads": 4,
        "n_layers": 2,
        "hidden_dim": 40,
        "head_dim": 16,
        "qk_norm": True,
        "n_kv_groups": 2,
        "rope_base": 1_000_000.0,
        "dtype": torch.float32,
    }
    for seed in range(1, 5000):
        model = Qwen3Model(config)
        randomise(model, seed)
        exact = double_copy(model, lambda: Qwen3Model({**config, "dtype": torch.float64}))

        def compute(ids):
            return exact(torch.tensor([ids]))[0, :, : end + 1]  # the rest of the rows is padding

        reply = greedy(compute, prompt, REPLY * 4, 10**9)
        if interesting(reply, end):
            break
    else:
        raise SystemExit("no seed gives clear greedy choices")
    print("book seed", seed, flush=True)

    @torch.no_grad()
    def whole(ids):
        return exact(torch.tensor([ids]))[0]

    write_json(folder / "expected.json", {**expectation(whole, prompt, reply, {}), "end": end})
    # The package makes matrices of the configured type and norms in float32.
    state = {key: value if value.dim() == 1 else value.bfloat16() for key, value in model.state_dict().items()}
    torch.save(state, folder / "qwen3-tiny-base.pth")


def write_tensors():
    OUT.mkdir(parents=True, exist_ok=True)
    base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    wide = torch.arange(6, dtype=torch.float16)
    torch.save(
        {
            "plain": base,
            "transposed": base.t(),
            "row": base[1],
            "column": base[:, 2],
            "odd": wide[1:4],
            "bf16": torch.tensor([1.5, -2.0]).bfloat16(),
            "f64": torch.tensor([0.5]).double(),
            "scalar": torch.tensor(7.0),
            "empty": torch.zeros(0, 3),
            "parameter": nn.Parameter(torch.ones(2)),
        },
        OUT / "tensors.pt",
    )


def write_seeds():
    """Small inputs for the fuzz targets."""
    corpus = OUT.parents[1] / "fuzz" / "corpus"
    for name in ("zip_fuzz", "pickle_fuzz", "torch_model_fuzz"):
        (corpus / name).mkdir(parents=True, exist_ok=True)
    config = dict(vocab_size=3, context_length=4, d_model=4, num_layers=1, num_heads=2, d_ff=2, rope_theta=100.0)
    model = CourseModel(config)
    randomise(model, 1)
    state = model.state_dict()
    state["layers.0.ffn.w1.weight"] = state["layers.0.ffn.w1.weight"].t().contiguous().t()
    whole = {"model_state_dict": state, "config": config, "args": argparse.Namespace(lr=1), "loss": numpy.float64(2)}
    for name, value, protocol in (("dict", whole, 2), ("bare", {k: v.half() for k, v in state.items()}, 5)):
        torch.save(value, corpus / "torch_model_fuzz" / name, pickle_protocol=protocol)
    shutil.copy(OUT / "tensors.pt", corpus / "zip_fuzz" / "tensors")
    with zipfile.ZipFile(corpus / "zip_fuzz" / "python", "w") as archive:
        for name in ("a/data.pkl", "a/byteorder", "a/data/0"):
            archive.writestr(name, name)
    with zipfile.ZipFile(corpus / "torch_model_fuzz" / "dict") as archive:
        (corpus / "pickle_fuzz" / "checkpoint").write_bytes(archive.read("dict/data.pkl"))
    pieces, merges = {0: b"a", 1: b"\xc3", 2: b"a\xc3"}, [(b"a", b"\xc3")]
    for protocol in (2, 5):
        (corpus / "pickle_fuzz" / f"vocab{protocol}").write_bytes(pickle.dumps(pieces, protocol=protocol))
        (corpus / "pickle_fuzz" / f"merges{protocol}").write_bytes(pickle.dumps(merges, protocol=protocol))
    itself = [{1, 2.5, None}, True, frozenset("x"), 2**70, -5, bytearray(b"z"), print]
    itself.append(itself)
    (corpus / "pickle_fuzz" / "itself").write_bytes(pickle.dumps(itself, protocol=5))


def main():
    torch.set_num_threads(1)
    parts = {"course": write_course, "book": write_book, "tensors": write_tensors, "seeds": write_seeds}
    for name in sys.argv[1:] or parts:
        parts[name]()


if __name__ == "__main__":
    main()
