#!/usr/bin/env python3
"""Writes tiny random models and what Hugging Face transformers computes from them.

    pip install torch transformers tokenizers safetensors
    tools/reference/model_golden.py [NAME...]        # default: all, into tests/golden/models

Each folder is a complete model (config.json, generation_config.json, tokenizer.json, tokenizer_config.json, weights)
plus expected.json:

    text, prompt           a text and its ids
    reply                  its greedy continuation (over ids that the tokenizer knows)
    columns                which columns of the logits are listed
    runs                   [{ids, logits: one row of the listed columns a position, logsumexp: one number a position}]
    noise                  largest difference in any logit or logsumexp from the values above ...
      f32                  ... when everything is computed in binary32
      rounded_inputs       ... when the input of every product is rounded to the type of the weights
      kv_f16               ... when cached keys and values are rounded to binary16

The values come from a run with double-precision products over the saved folder, loaded with dtype=torch.float32 (a
bfloat16 load would round the rotary table, too). The noise is what a sound implementation at that precision is
allowed; seeds are chosen so that no greedy choice is nearer than one and a half times their sum, and no router's
choice of experts nearer than GAP. Routers' inputs are never rounded. transformers computes their softmax in binary32
in any case.
"""

import json
import math
import pathlib
import shutil
import sys

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import AttentionInterface, AutoModelForCausalLM, GenerationConfig
from transformers import LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config, Qwen3MoeConfig
from transformers.masking_utils import AttentionMaskInterface, eager_mask
from transformers.models.qwen3.modeling_qwen3 import eager_attention_forward
from transformers.utils import logging

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "models"
QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
MERGES = ["h e", "i n", "e r", "a n", "Ġ t", "Ġt he", "r e", "o n", "Ġ a", "an d", "Ġ and", "Ġ w"]
END = "<|endoftext|>"
TEXT = "The miller's daughter went into the wood, and there she met an old man with a lantern in his hand."
VOCAB = 272
REPLY = 24
GAP = {"f32": 1e-4, "bf16": 5e-3}  # between logits of the last expert chosen and the next, by type of the weights
EAGER = {"attn_implementation": "eager", "experts_implementation": "eager"}
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def yarn(**more):
    return {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 128, **more}


LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
PLAIN = {"rope_type": "default", "rope_theta": 10000.0}

# name: (config class, settings that differ, type of the weights, more)
MODELS = {
    "qwen3_f32_gqa1": (Qwen3Config, dict(num_key_value_heads=4, head_dim=12, intermediate_size=24), "f32", {}),
    "qwen3_bf16_gqa2_tied": (Qwen3Config, dict(tie_word_embeddings=True), "bf16", dict(long=True)),
    "qwen3_f16_gqa4": (Qwen3Config, dict(num_attention_heads=8, head_dim=12, num_hidden_layers=3, intermediate_size=40), "f16", dict(long=True)),
    "qwen3_sharded": (Qwen3Config, dict(hidden_size=40), "bf16", dict(shard="24KB")),
    "qwen3_bias": (Qwen3Config, dict(attention_bias=True, rms_norm_eps=1e-3), "bf16", {}),
    "qwen3_yarn_v4": (Qwen3Config, dict(rope_parameters=yarn()), "bf16", dict(old=True, long=True)),
    "qwen3_yarn_v5": (
        Qwen3Config,
        dict(rope_parameters=yarn(attention_factor=1.25, beta_fast=16.0, beta_slow=2.0, truncate=False)),
        "f16",
        {},
    ),
    "qwen2": (Qwen2Config, dict(tie_word_embeddings=True, head_dim=None), "bf16", {}),
    "llama3": (LlamaConfig, dict(rope_parameters=LLAMA3, head_dim=16), "f16", dict(long=True)),
    "llama_linear_v4": (
        LlamaConfig,
        dict(
            rope_parameters={"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0},
            tie_word_embeddings=True,
            intermediate_size=40,
            head_dim=None,
        ),
        "f32",
        dict(old=True),
    ),
    "qwen3_moe": (
        Qwen3MoeConfig,
        dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=24, norm_topk_prob=True),
        "bf16",
        {},
    ),
    "qwen3_moe_mixed_stacked": (
        Qwen3MoeConfig,
        dict(
            num_hidden_layers=4,
            num_experts=5,
            num_experts_per_tok=3,
            moe_intermediate_size=12,
            intermediate_size=24,
            decoder_sparse_step=2,
            mlp_only_layers=[1],
            norm_topk_prob=False,
            tie_word_embeddings=True,
        ),
        "f32",
        dict(long=True, stacked=True),
    ),
    "mistral": (MistralConfig, dict(sliding_window=None, head_dim=None), "bf16", {}),
}


def make_config(kind, settings):
    values = dict(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=512,
        rms_norm_eps=1e-6,
        tie_word_embeddings=False,
        rope_parameters=dict(PLAIN),
        bos_token_id=None,
        eos_token_id=VOCAB - 4,
        pad_token_id=None,
    )
    values.update(settings)
    return kind(**{key: value for key, value in values.items() if key != "head_dim" or value is not None})


def make_tokenizer():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [tuple(merge.split(" ")) for merge in MERGES]
    pieces = alphabet + ["".join(merge) for merge in merges]
    tokenizer = Tokenizer(models.BPE(vocab={piece: i for i, piece in enumerate(pieces)}, merges=merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(END, special=True)])
    assert tokenizer.token_to_id(END) == VOCAB - 4
    return tokenizer


def randomise(model, generator):
    """Spreads values so that attention, gates and logits are far from uniform: wiring errors then show."""
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if "norm" in name:
            value = 1.2 + 0.4 * noise
        elif name.endswith("bias"):
            value = 0.5 * noise
        elif "embed_tokens" in name or "lm_head" in name:
            value = 0.7 * noise
        else:
            value = noise * 1.3 / math.sqrt(parameter.shape[-1])
        parameter.data.copy_(value)


def write_old_dialect(folder):
    """Rewrites config.json as transformers 4 would have written it."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    rope["type"] = rope.pop("rope_type")
    config["rope_scaling"] = rope
    config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.51.0"
    config.pop("layer_types", None)
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def save(folder, model, tokenizer, more):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model.generation_config = GenerationConfig(do_sample=False, eos_token_id=VOCAB - 4)
    model.save_pretrained(
        folder, max_shard_size=more.get("shard", "5GB"), save_original_format=not more.get("stacked")
    )
    if more.get("old"):
        write_old_dialect(folder)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "Qwen2Tokenizer", "eos_token": END, "bos_token": None}) + "\n"
    )


def f16_scaled(x):
    """Rounds to binary16 after division by a power of two, vector by vector."""
    scale = torch.exp2(torch.floor(torch.log2(x.abs().amax(-1, keepdim=True).clamp_min(1e-30))))
    return (x / scale).to(torch.float16).to(x.dtype) * scale


def attend_with_f16_cache(module, query, key, value, mask, **kwargs):
    return eager_attention_forward(module, query, f16_scaled(key), f16_scaled(value), mask, **kwargs)


AttentionInterface.register("f16_cache", attend_with_f16_cache)
AttentionMaskInterface.register("f16_cache", eager_mask)


class Runner:
    """Ways to compute one model in binary32 whose weights are of type `dtype`."""

    def __init__(self, model, dtype):
        self.model = model.eval()
        self.routers = [module for module in model.modules() if type(module).__name__.endswith("TopKRouter")]
        self.dtype = dtype

    def exact(self, ids):
        self.model.double()
        try:
            return self.logits(ids)
        finally:
            self.model.float()

    @torch.no_grad()
    def logits(self, ids):
        return self.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].double()

    def with_rounded_inputs(self, ids):
        exact = torch.nn.functional.linear
        unrounded = {router.weight.data_ptr() for router in self.routers}

        def linear(x, weight, bias=None):
            rounded = x if weight.data_ptr() in unrounded else x.to(self.dtype).to(torch.float32)
            return exact(rounded, weight, bias)

        torch.nn.functional.linear = linear
        try:
            return self.logits(ids)
        finally:
            torch.nn.functional.linear = exact

    def router_gap(self, ids):
        """The least difference of logits that decided about an expert."""
        gaps = [math.inf]

        def hook(router, _, output):
            logits = output[0].sort(-1, descending=True).values
            gaps.append(float((logits[:, router.top_k - 1] - logits[:, router.top_k]).min()))

        handles = [router.register_forward_hook(hook) for router in self.routers]
        try:
            self.exact(ids)
        finally:
            for handle in handles:
                handle.remove()
        return min(gaps)

    def with_f16_cache(self, ids):
        self.model.set_attn_implementation("f16_cache")
        try:
            return self.logits(ids)
        finally:
            self.model.set_attn_implementation("eager")

    def greedy(self, prompt, known, margin):
        """The continuation, or nothing if a best logit leads the second by less than `margin`."""
        ids = list(prompt)
        for _ in range(REPLY):
            top = self.exact(ids)[-1, :known].topk(2)
            if top.values[0] - top.values[1] < margin:
                return None
            ids.append(int(top.indices[0]))
        return ids[len(prompt) :]


def difference(a, b):
    return float(max((a - b).abs().max(), (a.logsumexp(-1) - b.logsumexp(-1)).abs().max()))


def noise(runner, runs):
    exact = [runner.exact(ids) for ids in runs]
    ways = (
        ("f32", runner.logits),
        ("rounded_inputs", runner.with_rounded_inputs),
        ("kv_f16", runner.with_f16_cache),
    )
    return {
        name: max(difference(compute(ids), values) for ids, values in zip(runs, exact)) for name, compute in ways
    }


def find_reply(runner, tokenizer, prompt):
    margin = 1.5 * sum(noise(runner, [prompt]).values())
    reply = runner.greedy(prompt, tokenizer.get_vocab_size(), margin)
    if not reply or tokenizer.token_to_id(END) in reply or len(set(reply)) <= 6:
        return None
    return reply if runner.router_gap(prompt + reply) > GAP.get(type_name(runner.dtype), 0) else None


def type_name(dtype):
    return next(name for name, known in DTYPES.items() if known == dtype)


def find_weights(model, dtype, tokenizer, prompt):
    """Tries seeds until the greedy continuation is beyond doubt; leaves the weights of the first such in `model`."""
    runner = Runner(model, dtype)
    for seed in range(1, 20000):
        randomise(model, torch.Generator().manual_seed(seed))
        for parameter in model.parameters():
            parameter.data = parameter.data.to(dtype).float()
        if find_reply(runner, tokenizer, prompt):
            return seed
    raise SystemExit("no seed gives clear greedy choices")


def expected(runner, tokenizer, prompt, seed, more):
    reply = find_reply(runner, tokenizer, prompt)
    assert reply, "the saved folder computes something else than the model in memory"
    generator = torch.Generator().manual_seed(seed)
    runs = [prompt + reply]
    if more.get("long"):
        runs.append(torch.randint(0, tokenizer.get_vocab_size(), (330,), generator=generator).tolist())
    assert all(runner.router_gap(ids) > GAP.get(type_name(runner.dtype), 0) for ids in runs)
    columns = sorted(torch.randperm(VOCAB, generator=generator)[:6].tolist())
    listed = []
    for ids in runs:
        values = runner.exact(ids)
        listed.append(
            {
                "ids": ids,
                "logits": [[round(x, 6) for x in row] for row in values[:, columns].tolist()],
                "logsumexp": [round(x, 6) for x in values.logsumexp(-1).tolist()],
            }
        )
    return {
        "text": TEXT,
        "prompt": prompt,
        "reply": reply,
        "columns": columns,
        "noise": {name: float(f"{value:.3g}") for name, value in noise(runner, runs).items()},
        "runs": listed,
    }


def build(name):
    kind, settings, stored, more = MODELS[name]
    dtype = DTYPES[stored]
    tokenizer = make_tokenizer()
    prompt = tokenizer.encode(TEXT).ids
    model = AutoModelForCausalLM.from_config(make_config(kind, settings), **EAGER)
    seed = find_weights(model, dtype, tokenizer, prompt)
    folder = OUT / name
    save(folder, model.to(dtype), tokenizer, more)
    loaded = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **EAGER)
    data = expected(Runner(loaded, dtype), tokenizer, prompt, seed, more)
    (folder / "expected.json").write_text(json.dumps(data, separators=(",", ":")) + "\n")
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{name}: seed {seed}, {size // 1024} KiB, noise {data['noise']}", flush=True)


def main():
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    for name in sys.argv[1:] or MODELS:
        build(name)


if __name__ == "__main__":
    main()
