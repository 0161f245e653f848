"""Configs of tiny models of each family, at sizes that a generator draws: of text models (`config`)
and of folders with a tower (`tower`), for check_training.py and check_classifiers.py."""
import transformers

IMAGE = 100000  # beyond every vocabulary, so that all ids are text


def layer_types(r, layers):
    return [r.choice(["sliding_attention", "full_attention"]) for _ in range(layers)]


def config(name, r):
    """A config of the family with sizes of its own."""
    t = transformers
    kv, groups, head = r.choice([1, 2, 3]), r.choice([1, 2, 3]), r.choice([6, 8, 10, 12, 16])
    heads, layers = kv * groups, r.choice([2, 3, 4])
    c = dict(vocab_size=r.randrange(60, 140), hidden_size=heads * head,
             intermediate_size=r.randrange(17, 70), num_hidden_layers=layers,
             num_attention_heads=heads, num_key_value_heads=kv, max_position_embeddings=128,
             bos_token_id=1, eos_token_id=2, pad_token_id=None,
             tie_word_embeddings=r.random() < 0.5)
    own = dict(c, hidden_size=heads * r.choice([7, 9, 11, 13]), head_dim=head)
    window = dict(sliding_window=r.randrange(3, 20))
    mixed = dict(window, layer_types=layer_types(r, layers))
    rope = dict(rope_type="default", rope_theta=r.choice([500.0, 1e4, 1e6]))
    part = dict(rope, partial_rotary_factor=0.5)
    ordinary = {k: v for k, v in c.items() if k != "num_key_value_heads"}
    makers = {
        "gpt2": lambda: t.GPT2Config(vocab_size=c["vocab_size"], n_positions=128,
                                     n_embd=c["hidden_size"], n_layer=layers, n_head=heads,
                                     resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
        "llama": lambda: t.LlamaConfig(**own, rope_parameters=rope),
        "mistral": lambda: t.MistralConfig(**own, **window, rope_parameters=rope),
        "ministral": lambda: t.MinistralConfig(**own, **mixed, rope_parameters=rope),
        "qwen2": lambda: t.Qwen2Config(**c, **mixed, use_sliding_window=True,
                                       rope_parameters=rope),
        "qwen3": lambda: t.Qwen3Config(**own, **mixed, use_sliding_window=True,
                                       rope_parameters=rope),
        "phi3": lambda: t.Phi3Config(**dict(c, hidden_size=heads * 16, pad_token_id=0), **window,
                                     rope_parameters=part),
        "smollm3": lambda: t.SmolLM3Config(
            **dict(c, pad_token_id=0), rope_parameters=rope,
            no_rope_layers=[r.randrange(2) for _ in range(layers)]),
        "starcoder2": lambda: t.Starcoder2Config(**c, **window, rope_parameters=rope,
                                                 residual_dropout=0.0, embedding_dropout=0.0),
        "gpt_neox": lambda: t.GPTNeoXConfig(
            **dict(ordinary, hidden_size=heads * 16), hidden_dropout=0.0, attention_dropout=0.0,
            use_parallel_residual=r.random() < 0.5,
            rope_parameters=dict(rope, partial_rotary_factor=0.25)),
        "gemma": lambda: t.GemmaConfig(**dict(own, pad_token_id=0), rope_parameters=rope),
        "gemma2": lambda: t.Gemma2Config(**dict(own, pad_token_id=0), **mixed,
                                         query_pre_attn_scalar=r.choice([3, 7, 20]),
                                         attn_logit_softcapping=r.choice([0.5, 2.0]),
                                         final_logit_softcapping=r.choice([1.0, 3.0]),
                                         rope_parameters=rope),
        "gemma3_text": lambda: t.Gemma3TextConfig(
            **dict(own, pad_token_id=0), **mixed,
            query_pre_attn_scalar=r.choice([3, 7, 20]),
            rope_parameters=dict(full_attention=rope,
                                 sliding_attention=dict(rope, rope_theta=300.0))),
        "olmo2": lambda: t.Olmo2Config(**c, rope_parameters=rope),
        "olmo3": lambda: t.Olmo3Config(**c, **mixed, rope_parameters=dict(
            full_attention=rope, sliding_attention=dict(rope, rope_theta=700.0))),
        "granite": lambda: t.GraniteConfig(**c, embedding_multiplier=r.choice([3.0, 12.0]),
                                           attention_multiplier=r.choice([0.05, 0.5]),
                                           residual_multiplier=r.choice([0.3, 2.0]),
                                           logits_scaling=r.choice([0.5, 4.0]),
                                           rope_parameters=rope),
        "glm4": lambda: t.Glm4Config(**dict(own, head_dim=16), rope_parameters=part),
        "arcee": lambda: t.ArceeConfig(**c, rope_parameters=rope, mlp_bias=r.random() < 0.5,
                                       attention_bias=r.random() < 0.5),
        "seed_oss": lambda: t.SeedOssConfig(**own, rope_parameters=rope, attention_dropout=0.0,
                                            residual_dropout=0.0),
        "exaone4": lambda: t.Exaone4Config(**own, **mixed, rope_parameters=rope),
        "cohere": lambda: t.CohereConfig(**dict(c, pad_token_id=0), rope_parameters=rope,
                                         use_qk_norm=r.random() < 0.5,
                                         logit_scale=r.choice([0.1, 0.6])),
        "cohere2": lambda: t.Cohere2Config(**dict(c, pad_token_id=0), **mixed,
                                           rope_parameters=rope, logit_scale=0.4),
        "ernie4_5": lambda: t.Ernie4_5Config(**own, rope_parameters=rope,
                                             use_bias=r.random() < 0.5),
        "hunyuan_v1_dense": lambda: t.HunYuanDenseV1Config(**own, rope_parameters=dict(
            rope_type="dynamic", rope_theta=1e4, alpha=r.choice([20.0, 1000.0]), factor=1.0)),
        "helium": lambda: t.HeliumConfig(**dict(c, pad_token_id=3), head_dim=head,
                                         rope_parameters=rope),
        "internlm3": lambda: t.InternLM3Config(**c, head_dim=head, rope_parameters=rope,
                                               attention_bias=True, mlp_bias=True),
        "cwm": lambda: t.CwmConfig(**c, **mixed, head_dim=head, rope_parameters=rope),
        "phi": lambda: t.PhiConfig(**dict(c, hidden_size=heads * 16), rope_parameters=part,
                                   qk_layernorm=r.random() < 0.5),
        "stablelm": lambda: t.StableLmConfig(**dict(c, hidden_size=heads * 16),
                                             rope_parameters=part, use_qkv_bias=True,
                                             use_parallel_residual=r.random() < 0.5,
                                             qk_layernorm=r.random() < 0.5),
        "opt": lambda: t.OPTConfig(
            **ordinary, ffn_dim=c["intermediate_size"], dropout=0.0,
            do_layer_norm_before=r.random() < 0.5, enable_bias=r.random() < 0.5,
            word_embed_proj_dim=r.choice([None, 9, 20])),
        "falcon": lambda: t.FalconConfig(
            **ordinary, ffn_hidden_size=c["intermediate_size"], rope_parameters=rope,
            num_kv_heads=kv, new_decoder_architecture=r.random() < 0.5,
            multi_query=r.random() < 0.5, parallel_attn=True, bias=r.random() < 0.5),
        "bloom": lambda: t.BloomConfig(
            vocab_size=c["vocab_size"], hidden_size=heads * head, n_layer=layers, n_head=heads,
            tie_word_embeddings=c["tie_word_embeddings"]),
        "glm": lambda: t.GlmConfig(**dict(own, head_dim=16), rope_parameters=part),
        "vaultgemma": lambda: t.VaultGemmaConfig(**dict(c, pad_token_id=0), **mixed,
                                                 head_dim=head,
                                                 query_pre_attn_scalar=r.choice([3, 7, 20]),
                                                 rope_parameters=rope),
        "ministral3": lambda: t.Ministral3Config(**own, rope_parameters=dict(
            rope_type="yarn", rope_theta=1000.0, factor=4.0, beta_fast=4.0, beta_slow=1.0,
            mscale=1.0, mscale_all_dim=1.0, original_max_position_embeddings=16,
            llama_4_scaling_beta=0.3)),
        "lfm2": lambda: lfm2(c, layers, r),
        "qwen3_5_text": lambda: qwen3_5(own, layers, r),
        "gemma4_text": lambda: t.Gemma4TextConfig(**gemma4(own, mixed, r),
                                                  hidden_size_per_layer_input=0),
        "gemma4_text-shared": lambda: t.Gemma4TextConfig(**gemma4_shared(own, r)),
        "gemma4_unified_text": lambda: t.Gemma4UnifiedTextConfig(**gemma4(own, mixed, r)),
        "apertus": lambda: t.ApertusConfig(**dict(c, pad_token_id=3), rope_parameters=rope,
                                           attention_bias=r.random() < 0.5),
        "nanochat": lambda: t.NanoChatConfig(**dict(c, pad_token_id=1), rope_parameters=rope,
                                             attention_bias=r.random() < 0.5),
        # check_training.py codes their matrices: blocks of 16 divide them
        "fp8-blocks": lambda: t.Qwen3Config(**dict(own, hidden_size=48, intermediate_size=80,
                                                   head_dim=16, tie_word_embeddings=False)),
        "fp8-tensor": lambda: t.Qwen3Config(**dict(own, tie_word_embeddings=False)),
        "nemotron": lambda: t.NemotronConfig(**dict(own, head_dim=16), rope_parameters=part),
        "olmo": lambda: t.OlmoConfig(**dict(c, pad_token_id=1), rope_parameters=rope,
                                     clip_qkv=r.choice([0.7, 1.5])),
    }
    return makers[name]() if name else list(makers)


def lfm2(c, layers, r):
    """Every second layer is a short convolution, or every second is not."""
    first = r.randrange(2)
    kinds = [["conv", "full_attention"][(i + first) % 2] for i in range(layers)]
    return transformers.Lfm2Config(
        **dict(c, pad_token_id=0, tie_word_embeddings=True), layer_types=kinds,
        conv_bias=r.random() < 0.5, conv_L_cache=r.choice([3, 4]),
        block_multiple_of=r.choice([1, 4, 8]), block_ffn_dim_multiplier=r.choice([0.8, 1.1]))


def qwen3_5(own, layers, r):
    """Every second layer has linear attention, or every second has not. Its results have few columns
    and may be near 0, and a norm follows: its epsilon is what rounding depends on."""
    first, keys = r.randrange(2), r.choice([1, 2])
    kinds = [["linear_attention", "full_attention"][(i + first) % 2] for i in range(layers)]
    return transformers.Qwen3_5TextConfig(
        **dict(own, head_dim=8), layer_types=kinds, attention_bias=r.random() < 0.5,
        linear_num_key_heads=keys, linear_num_value_heads=keys * r.choice([1, 2, 3]),
        linear_key_head_dim=r.choice([6, 10]), linear_value_head_dim=r.choice([5, 7, 8]),
        linear_conv_kernel_dim=r.choice([3, 4]), rms_norm_eps=0.2,
        rope_parameters=dict(rope_type="default", rope_theta=700.0, partial_rotary_factor=0.5,
                             mrope_section=[1, 1, 0], mrope_interleaved=True))


def gemma4(own, mixed, r):
    """Two kinds of heads; values of their own, or keys that are values."""
    alike = r.random() < 0.5
    return dict(own, **mixed, pad_token_id=0, global_head_dim=r.choice([4, 14, 18]),
                attention_k_eq_v=alike, num_global_key_value_heads=1 if alike else None,
                final_logit_softcapping=r.choice([None, 3.0]), rope_parameters=dict(
                    full_attention=dict(rope_type="proportional", rope_theta=1000.0,
                                        partial_rotary_factor=r.choice([0.25, 0.5, 1.0])),
                    sliding_attention=dict(rope_type="default", rope_theta=60.0)))


def gemma4_shared(own, r):
    """As E2B and E4B: both kinds of layers, and later ones with their keys and values."""
    kinds = ["sliding_attention", "full_attention"]
    first = r.sample(kinds, 2) + r.choices(kinds, k=r.randrange(2))
    last = r.choices(kinds, k=r.randrange(1, 3)) + ["full_attention"]
    more = dict(hidden_size=own["hidden_size"] + 8, num_hidden_layers=len(first + last),
                num_kv_shared_layers=len(last), layer_types=first + last,
                sliding_window=r.randrange(3, 20),
                hidden_size_per_layer_input=r.choice([3, 8]),
                vocab_size_per_layer_input=own["vocab_size"] + r.randrange(3),
                use_double_wide_mlp=r.random() < 0.5, rms_norm_eps=0.02)
    return dict(gemma4(own, {}, r), **more)


def tower(name, r):
    """A folder's config, with a text model of sizes of its own and the smallest tower."""
    t = transformers
    heads, head = r.choice([2, 4]), r.choice([8, 16])
    width = heads * head
    text = dict(vocab_size=r.randrange(60, 140), hidden_size=width,
                intermediate_size=r.randrange(17, 70), num_hidden_layers=r.choice([2, 3]),
                num_attention_heads=heads, num_key_value_heads=r.choice([1, 2]),
                max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=0)
    sees = dict(hidden_size=4, num_attention_heads=1, num_hidden_layers=1, intermediate_size=3,
                image_size=4, patch_size=2)
    qwen = dict(depth=1, hidden_size=8, num_heads=2, intermediate_size=3, patch_size=2,
                out_hidden_size=width, temporal_patch_size=1)
    turned = dict(rope_type="default", rope_theta=900.0, mrope_section=[head // 2 - 2, 1, 1])
    image, video = dict(image_token_id=IMAGE), dict(video_token_id=IMAGE + 1)
    windows = dict(sliding_window=r.randrange(3, 20),
                   layer_types=layer_types(r, text["num_hidden_layers"]))
    g4 = gemma4(dict(text, head_dim=head), windows, r)
    makers = {
        "gemma3": lambda: t.Gemma3Config(
            text_config=dict(text, **windows, model_type="gemma3_text", head_dim=head,
                             query_pre_attn_scalar=7),
            vision_config=dict(sees, model_type="siglip_vision_model"), mm_tokens_per_image=4,
            image_token_index=IMAGE),
        "gemma4": lambda: t.Gemma4Config(
            text_config=dict(g4, model_type="gemma4_text", hidden_size_per_layer_input=0),
            vision_config=dict(sees, model_type="gemma4_vision", num_key_value_heads=1,
                               head_dim=4, position_embedding_size=8, pooling_kernel_size=1),
            audio_token_id=IMAGE + 2, **image, **video),
        "gemma4_unified": lambda: t.Gemma4UnifiedConfig(
            text_config=dict(g4, model_type="gemma4_unified_text"),
            vision_config=dict(model_type="gemma4_unified_vision", patch_size=2,
                               pooling_kernel_size=1, mm_embed_dim=4, mm_posemb_size=4,
                               output_proj_dims=width),
            audio_token_id=IMAGE + 2, **image, **video),
        "mistral3": lambda: t.Mistral3Config(
            text_config=dict(text, model_type="mistral", head_dim=head, sliding_window=None),
            vision_config=dict(sees, model_type="pixtral", head_dim=4), image_token_index=IMAGE,
            tie_word_embeddings=False),
        "qwen2_5_vl": lambda: t.Qwen2_5_VLConfig(
            text_config=dict(text, rope_parameters=turned),
            vision_config=dict(qwen, fullatt_block_indexes=[0], window_size=4), **image, **video),
        "qwen3_vl": lambda: t.Qwen3VLConfig(
            text_config=dict(text, head_dim=head,
                             rope_parameters=dict(turned, mrope_interleaved=True)),
            vision_config=dict(qwen, num_position_embeddings=4, deepstack_visual_indexes=[0]),
            tie_word_embeddings=True, **image, **video),
        "qwen3_5": lambda: t.Qwen3_5Config(
            text_config=qwen3_5(dict(text, hidden_size=width), text["num_hidden_layers"],
                                r).to_dict(),
            vision_config=dict(qwen, num_position_embeddings=4), **image, **video),
        "smolvlm": lambda: t.SmolVLMConfig(
            text_config=dict(text, model_type="llama", pad_token_id=3), vision_config=sees,
            scale_factor=1, **image),
        "internvl": lambda: t.InternVLConfig(
            text_config=dict(text, model_type="qwen3", head_dim=head),
            vision_config=dict(sees, image_size=[4, 4], patch_size=[2, 2]), **image),
        "glm4v": lambda: t.Glm4vConfig(
            text_config=dict(text, rope_parameters=dict(turned, mrope_section=[head // 4 - 1, 1, 0],
                                                        partial_rotary_factor=0.5)),
            vision_config=dict(sees, depth=1, num_heads=1, out_hidden_size=width,
                               intermediate_size=6, temporal_patch_size=1), **image, **video),
        "lfm2_vl": lambda: t.Lfm2VlConfig(
            text_config=lfm2(text, text["num_hidden_layers"], r).to_dict(),
            vision_config=dict(sees, model_type="siglip2_vision_model", num_patches=4,
                               vision_use_head=False), projector_hidden_size=5, **image),
    }
    return makers[name]() if name else list(makers)
