#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the files beside it, which tests/nn/test_models.c loads: torchvision's networks with fewer channels, saved in
half precision as PyTorch saves them, each with an input and what the network makes of that in evaluation mode. Needs
torch, torchvision and safetensors."""
import pathlib

import torch
from safetensors.torch import save_file
from torch import nn
from torchvision import models

HERE = pathlib.Path(__file__).parent
CLASSES = 5
# what a model's channels are divided by, and the extent of its pictures
MODELS = {"resnet18": (32, 32), "resnet50": (64, 32), "alexnet": (64, 64), "vgg16": (64, 32), "googlenet": (16, 32),
          "mobilenet_v2": (8, 64)}


def narrow(module, by):
    """Puts layers of fewer channels into a module, but for a picture's three and the classes."""
    def divided(n):
        return n if n in (3, CLASSES) else max(1, int(n / by + 0.5)) # as tn_model_opts.width has it

    for name, child in module.named_children():
        if isinstance(child, nn.Conv2d):
            groups = 1 if child.groups == 1 else divided(child.groups)
            child = nn.Conv2d(divided(child.in_channels), divided(child.out_channels), child.kernel_size, child.stride,
                              child.padding, groups=groups, bias=child.bias is not None)
        elif isinstance(child, nn.BatchNorm2d):
            child = nn.BatchNorm2d(divided(child.num_features), child.eps)
            # as if it had been trained
            nn.init.uniform_(child.weight, 0.5, 1.5)
            nn.init.uniform_(child.bias, -0.5, 0.5)
            nn.init.uniform_(child.running_mean, -0.2, 0.2)
            nn.init.uniform_(child.running_var, 0.5, 1.5)
        elif isinstance(child, nn.Linear):
            child = nn.Linear(divided(child.in_features), divided(child.out_features))
        else:
            narrow(child, by)
        if isinstance(child, (nn.Conv2d, nn.Linear)): # so that results depend on what comes in
            nn.init.kaiming_normal_(child.weight, nonlinearity="relu")
        setattr(module, name, child)


def halved(x):
    return x.half() if x.is_floating_point() else x


def main():
    torch.manual_seed(7)
    for name, (by, extent) in MODELS.items():
        more = {"aux_logits": False, "init_weights": False} if name == "googlenet" else {}
        net = getattr(models, name)(num_classes=CLASSES, **more)
        narrow(net, by)
        net.eval()
        net.load_state_dict({key: halved(value).to(value.dtype) for key, value in net.state_dict().items()})
        x = torch.randn(2, 3, extent, extent).half()
        y = net.double()(x.double()).detach()
        values = {key: halved(value) for key, value in net.state_dict().items()}
        save_file({**values, "test.x": x, "test.y": y}, HERE / f"{name}.safetensors")
        (HERE / f"{name}.safetensors").chmod(0o644)
        print(name, sum(p.numel() for p in net.parameters()), y)


if __name__ == "__main__":
    main()
