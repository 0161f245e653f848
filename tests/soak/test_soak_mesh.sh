# label: soak
# All products of 1, 2, 4 and 8 tensor ranks, 1 and 2 stages, data ranks and context ranks, and ZeRO
# 0 to 3, up to 16 ranks, on four models, with tp_exact and without: each run has the bits of its
# class, or is refused as listed (tests/engine/test_mesh_products.c, of which a covering set runs each
# day).
# timeout: 2400, not under sanitizers (its covering set runs there)
"$BUILD/tests/test_mesh_products" all
