#!/usr/bin/env python3
"""Writes GGUF files of the small models in tests/golden/models, with the `gguf` package and the facts of llama.cpp's
converter: the same weights, so the logits of their expected.json hold for these files too.

    pip install gguf safetensors torch
    tools/reference/gguf_models.py [NAME...]        # default: all, into tests/golden/gguf
    tools/reference/gguf_models.py --seeds          # tests/fuzz/corpus/gguf_fuzz

Llama's q and k have their rows reordered so that the halves of a pair are neighbours; "llama3" frequencies become the
tensor rope_freqs, which divides them. Vectors are written in binary32, matrices as the folder has them.
"""

import json
import math
import pathlib
import re
import sys

import gguf
import numpy as np
import torch
from safetensors.torch import load_file

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
TYPES = gguf.GGMLQuantizationType

# name: (architecture, more)
MODELS = {
    "qwen3_bf16_gqa2_tied": ("qwen3", {}),
    "qwen3_sharded": ("qwen3", dict(split=2)),
    "qwen3_yarn_v4": ("qwen3", {}),
    "qwen2": ("qwen2", {}),
    "llama3": ("llama", {}),
    "llama_linear_v4": ("llama", {}),
    "mistral": ("llama", {}),
    "qwen3_moe": ("qwen3moe", {}),
}


def permute(rows, heads):
    """Rows of each head, from first halves then second halves of the pairs, to pair after pair."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def llama3_divisors(rope, head_dim):
    frequencies = 1.0 / (rope["rope_theta"] ** (torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim))
    old, low, high = rope["original_max_position_embeddings"], rope["low_freq_factor"], rope["high_freq_factor"]
    divisors = []
    for wave in (2 * math.pi / frequencies).tolist():
        smooth = (old / wave - low) / (high - low)
        if wave < old / high:
            divisors.append(1.0)
        elif wave > old / low:
            divisors.append(rope["factor"])
        else:
            divisors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(divisors, dtype=np.float32)


def rope_of(config):
    rope = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    rope.setdefault("rope_type", rope.pop("type", "default"))
    rope.setdefault("rope_theta", config.get("rope_theta", 10000.0))
    return rope


def write_config(writer, config, rope, head_dim):
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    if head_dim != config["hidden_size"] // config["num_attention_heads"]:
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_rope_dimension_count(head_dim)
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    elif rope["rope_type"] == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if "num_experts_per_tok" in config:
        writer.add_expert_count(config["num_local_experts"])
        writer.add_expert_used_count(config["num_experts_per_tok"])
        writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_sampling_temp(0.6)
    writer.add_sampling_top_k(20)
    writer.add_sampling_top_p(0.95)


def write_tokenizer(writer, folder, vocab_size):
    data = json.loads((folder / "tokenizer.json").read_text())
    added = {token["id"]: token for token in data["added_tokens"]}
    by_id = {i: piece for piece, i in data["model"]["vocab"].items()} | {i: t["content"] for i, t in added.items()}
    tokens, types = [], []
    for i in range(vocab_size):
        tokens.append(by_id.get(i, f"[PAD{i}]"))
        kind = gguf.TokenType.NORMAL if i in by_id else gguf.TokenType.UNUSED
        if i in added:
            kind = gguf.TokenType.CONTROL if added[i]["special"] else gguf.TokenType.USER_DEFINED
        types.append(kind)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    merges = data["model"]["merges"]
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in merges])
    writer.add_eos_token_id(next(iter(added)))
    writer.add_add_bos_token(False)
    writer.add_chat_template("{% for m in messages %}{{ m['content'] }}{% endfor %}")


def stack_experts(tensors):
    """One tensor [E, rows, cols] for the matrices of a layer's experts."""
    stacks, rest = {}, {}
    for name, tensor in tensors.items():
        found = re.fullmatch(r"(.*\.experts)\.(\d+)\.(.*)", name)
        if found:
            stacks.setdefault(f"{found[1]}.{found[3]}", {})[int(found[2])] = tensor
        else:
            rest[name] = tensor
    return rest | {name: torch.stack([each[i] for i in range(len(each))]) for name, each in stacks.items()}


def write_tensors(writer, tensors, config, architecture, rope, head_dim):
    names = gguf.get_tensor_name_map(writer.arch_enum, config["num_hidden_layers"])
    if rope["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_divisors(rope, head_dim))
    for name, tensor in stack_experts(tensors).items():
        if architecture == "llama" and ".q_proj" in name:
            tensor = permute(tensor, config["num_attention_heads"])
        if architecture == "llama" and ".k_proj" in name:
            tensor = permute(tensor, config["num_key_value_heads"])
        new = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if tensor.ndim == 1 or tensor.dtype == torch.float32:
            writer.add_tensor(new, tensor.float().numpy())
        elif tensor.dtype == torch.float16:
            writer.add_tensor(new, tensor.numpy())
        else:
            rows = tensor.view(torch.int16).numpy().view(np.uint8)
            writer.add_tensor(new, rows, raw_dtype=TYPES.BF16)


def build(name):
    architecture, more = MODELS[name]
    folder = ROOT / "models" / name
    config = json.loads((folder / "config.json").read_text())
    rope = rope_of(config)
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    tensors = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors |= load_file(file)
    if config.get("tie_word_embeddings"):
        tensors.pop("lm_head.weight", None)
    out = ROOT / "gguf" / f"{name}.gguf"
    out.parent.mkdir(exist_ok=True)
    most = -(-len(tensors) // more["split"]) if "split" in more else 0
    writer = gguf.GGUFWriter(out, architecture, split_max_tensors=most)
    writer.arch_enum = next(k for k, v in gguf.MODEL_ARCH_NAMES.items() if v == architecture)
    writer.add_name(name)
    write_config(writer, config, rope, head_dim)
    write_tokenizer(writer, folder, config["vocab_size"])
    write_tensors(writer, tensors, config, architecture, rope, head_dim)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def build_seed(architecture, experts=False, kind=TYPES.F32):
    """A file of some hundred bytes that holds everything which is read."""
    out = ROOT.parent / "fuzz" / "corpus" / "gguf_fuzz" / architecture
    out.parent.mkdir(exist_ok=True)
    writer = gguf.GGUFWriter(out, architecture)
    config = dict(num_hidden_layers=1, max_position_embeddings=8, hidden_size=32, intermediate_size=32)
    config |= dict(num_attention_heads=2, num_key_value_heads=1, rms_norm_eps=1e-6, vocab_size=6)
    rope = dict(rope_type="yarn", rope_theta=1e4, factor=2.0, original_max_position_embeddings=4)
    write_config(writer, config, rope if architecture == "qwen3" else dict(rope, rope_type="default"), 16)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe" if architecture == "llama" else "qwen2")
    writer.add_token_list(["T", "h", "e", "he", "<|im_end|>", "[PAD5]"])
    writer.add_token_types([1, 1, 1, 1, 3, 5])
    writer.add_token_merges(["h e"])
    writer.add_bos_token_id(4)
    writer.add_eos_token_id(4)
    if experts:
        writer.add_expert_count(2)
        writer.add_expert_used_count(1)
        writer.add_expert_feed_forward_length(1)
        for name in ("gate", "up"):
            writer.add_tensor(f"blk.0.ffn_{name}_exps.weight", np.zeros((2, 1, 4), dtype=np.float32))
    if architecture == "llama":
        writer.add_tensor("rope_freqs.weight", np.ones(8, dtype=np.float32))
    writer.add_tensor("token_embd.weight", gguf.quants.quantize(np.ones((6, 32), dtype=np.float32), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    if sys.argv[1:] == ["--seeds"]:
        build_seed("qwen3")
        build_seed("llama", kind=TYPES.Q8_0)
        build_seed("qwen3moe", experts=True, kind=TYPES.Q4_0)
        return
    for name in sys.argv[1:] or MODELS:
        build(name)


if __name__ == "__main__":
    main()
