"""Turns the GGUF file of SmolLM2 into a folder that loads in a second; run in a process of its own by `fetch`."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def convert(gguf: Path, made: Path) -> None:
    """Write `made`: config.json, model.safetensors and the tokenizer.

    The weights are kept in float16: closer to the file's 4-bit values than bfloat16, and half of float32's size.
    """
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    made.mkdir()
    network = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    tensors = {
        name: tensor.to(torch.float16).contiguous()
        for name, tensor in network.state_dict().items()
        if name != "lm_head.weight"  # tied to the embeddings
    }
    save_file(tensors, made / "model.safetensors", metadata={"format": "pt"})
    config = network.config.to_dict()
    config.pop("quantization_config", None)  # it would send the loader looking for a GGUF
    config.update(architectures=["LlamaForCausalLM"], dtype="float16")
    (made / "config.json").write_text(json.dumps(config, indent=1))
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(made)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
