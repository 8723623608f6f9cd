# SPDX-License-Identifier: MIT
"""PyTorch's side of bench/language.c: each network as its loss, a function without arguments, and its parameters."""

TOKENS, TIME, WIDTH, HEADS, BLOCKS = 50304, 1024, 768, 12, 12


def lstm(torch, device, steps, units=650, batch=20, words=10000):
    nn = torch.nn
    table, cells, scores = nn.Embedding(words, units), nn.LSTM(units, units, 2), nn.Linear(units, words)
    layers = nn.ModuleList([table, cells, scores]).to(device)
    x, t = torch.randint(0, words, (steps, batch), device=device), torch.randint(0, words, (steps * batch,),
                                                                                  device=device)
    return (lambda: nn.functional.cross_entropy(scores(cells(table(x))[0]).view(-1, words), t)), layers.parameters()


def gpt2(torch, device, batch, half):
    """With the attention that PyTorch has as one function, and casts by autocast if `half`."""
    nn, f = torch.nn, torch.nn.functional
    table, places = nn.Embedding(TOKENS, WIDTH), nn.Embedding(TIME, WIDTH)
    blocks = [nn.ModuleList([nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH),
                             nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)])
              for _ in range(BLOCKS)]
    last = nn.LayerNorm(WIDTH)
    layers = nn.ModuleList([table, places, *blocks, last]).to(device)
    x = torch.randint(0, TOKENS, (batch, TIME), device=device)
    t = torch.randint(0, TOKENS, (batch * TIME,), device=device)

    def scores():
        h = table(x) + places.weight
        for norm1, qkv, out, norm2, up, down in blocks:
            parts = qkv(norm1(h)).view(batch, TIME, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
            mixed = f.scaled_dot_product_attention(*parts, is_causal=True)
            h = h + out(mixed.transpose(1, 2).reshape(batch, TIME, WIDTH))
            h = h + down(f.gelu(up(norm2(h)), approximate="tanh"))
        return f.linear(last(h), table.weight).view(-1, TOKENS)

    def loss():
        with torch.autocast("cuda", torch.bfloat16, enabled=half):
            return f.cross_entropy(scores(), t)

    return loss, layers.parameters()


def networks(torch, device, gpu):
    """Rows: what makes a network, and whether its products may be TF32's."""
    if not gpu:
        return {"network-lstm-ptb": (lambda: lstm(torch, device, 10), False)}
    return {"network-lstm-ptb": (lambda: lstm(torch, device, 35), False),
            "network-lstm-ptb-tf32": (lambda: lstm(torch, device, 35), True),
            "network-gpt2-tf32": (lambda: gpt2(torch, device, 8, False), True),
            "network-gpt2-bf16": (lambda: gpt2(torch, device, 16, True), True)}
