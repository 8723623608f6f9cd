#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `tanso train digits` does, as a PyTorch script: the same samples, network, optimizer, schedule and epochs, an
evaluation after each, and the parameters in a file. bench/run times the whole command, from its start to its end."""
import argparse
import gzip
import os

import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--device", default="cuda:0")
parser.add_argument("--out", default="digits.pt")
options = parser.parse_args()
EPOCHS, BATCH = 30, 64

path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "data", "digits", "digits.csv.gz")
with gzip.open(path, "rt") as file:
    rows = torch.tensor([[int(word) for word in line.split(",")] for line in file])
torch.manual_seed(0)
rows = rows[torch.randperm(len(rows))].to(options.device)
x, t = rows[:, :64].float() / 16, rows[:, 64]
train = len(rows) * 4 // 5
net = nn.Sequential(nn.LayerNorm(64), nn.Dropout(0.2), nn.Linear(64, 100), nn.ReLU(),
                    nn.Linear(100, 10)).to(options.device)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, EPOCHS)
for epoch in range(EPOCHS):
    net.train()
    order, total = torch.randperm(train, device=options.device), torch.zeros((), device=options.device)
    for i in range(0, train, BATCH):
        part = order[i:i + BATCH]
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(net(x[part]), t[part])
        loss.backward()
        optimizer.step()
        total += loss.detach() * len(part)
    schedule.step()
    net.eval()
    with torch.no_grad():
        accuracy = (net(x[train:]).argmax(1) == t[train:]).float().mean()
    print(f"epoch {epoch + 1}: loss {total.item() / train:.4f}, accuracy {accuracy.item():.4f}")
torch.save(net.state_dict(), options.out)
