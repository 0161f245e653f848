/* What to say of a model_type that is not in the registry: why it is not there, where that is
 * known.
 */
#include <string.h>

#include "model/registry.h"

static const char experts[] = "it has mixtures of experts, which are not supported";
static const char states[] =
    "it has state spaces or linear attention of a kind that is not supported: built are attention "
    "over the sequence, the short convolutions of lfm2 and the gated delta rule of qwen3_5";
static const char latent[] =
    "it has latent attention (kv_lora_rank) and mixtures of experts, which are not supported";
static const char hidden_states[] =
    "its layers have several hidden states (altup_num_inputs), products of low rank (laurel_rank) "
    "and an MLP that is sparse in its activations, which are not supported";
static const char distances[] =
    "its scores have a bias by distance (ALiBi), which only model_type bloom has here";
static const char encoder_decoder[] =
    "it is an encoder-decoder; only stand-alone decoders are supported";

/* A name that ends in * stands for all that begin so. The first match counts. */
static const struct {
    const char *type, *why;
} kinds[] = {
    {"qwen2_moe", experts},
    {"qwen3_moe", experts},
    {"qwen3_vl_moe*", experts},
    {"qwen3_omni_moe*", experts},
    {"mixtral", experts},
    {"minimax*", experts},
    {"gpt_oss", experts},
    {"deepseek_v2", experts},
    {"deepseek_v3*", experts},
    {"deepseek_v4", experts},
    {"deepseek_vl_v2", experts},
    {"llama4*", experts},
    {"olmoe", experts},
    {"flex_olmo", experts},
    {"granitemoehybrid", states},
    {"granitemoe*", experts},
    {"phimoe", experts},
    {"glm4_moe*", experts},
    {"glm4v_moe*", experts},
    {"dbrx", experts},
    {"jetmoe", experts},
    {"nllb-moe", experts},
    {"switch_transformers", experts},
    {"ernie4_5_moe", experts},
    {"hunyuan_v1_moe", experts},
    {"dots1", experts},
    {"longcat_flash", experts},
    {"kimi*", experts},
    {"qwen3_next", experts},
    {"qwen3_5_moe*", experts},
    {"olmo_hybrid", states},
    {"mamba*", states},
    {"falcon_mamba", states},
    {"falcon_h1", states},
    {"lfm2_moe", experts},
    {"mistral4", latent},
    {"gemma3n_text", hidden_states},
    {"nemotron_h", states},
    {"rwkv*", states},
    {"jamba", states},
    {"zamba*", states},
    {"bamba", states},
    {"recurrent_gemma", states},
    {"xlstm", states},
    {"mpt", distances},
    {"t5*", encoder_decoder},
    {"mt5", encoder_decoder},
    {"umt5", encoder_decoder},
    {"longt5", encoder_decoder},
    {"bart", encoder_decoder},
    {"mbart", encoder_decoder},
    {"marian", encoder_decoder},
    {"pegasus*", encoder_decoder},
    {"whisper", encoder_decoder},
    {"m2m_100", encoder_decoder},
    {"blenderbot*", encoder_decoder},
    {"led", encoder_decoder},
    {"bigbird_pegasus", encoder_decoder},
    {"encoder-decoder", encoder_decoder},
    {"prophetnet", encoder_decoder},
    {"fsmt", encoder_decoder},
    {"speech_to_text", encoder_decoder},
};

/* Models with a vision tower (or ears), and the model_type of their text model in a folder of its
 * own. */
static const struct {
    const char *type, *text;
} towers[] = {
    {"pixtral", "mistral"},        {"llava*", "llama"},
    {"vipllava", "llama"},         {"qwen2_vl*", "qwen2"},
    {"qwen2_5_vl*", "qwen2"},      {"qwen2_5_omni*", "qwen2"},
    {"qwen2_audio*", "qwen2"},     {"qwen3_vl*", "qwen3"},
    {"idefics3", "llama"},         {"paligemma", "gemma"},
    {"phi4_multimodal", "phi3"},   {"aya_vision", "cohere2"},
    {"granite_speech", "granite"}, {"mllama", "llama"},
    {"voxtral", "llama"},          {"ovis2", "qwen2"},
};

static bool matches(const char *pattern, const char *type) {
    size_t length = strlen(pattern);
    if (pattern[length - 1] == '*') return !strncmp(pattern, type, length - 1);
    return !strcmp(pattern, type);
}

static sifr_status refuse(const model_reader *r, const char *type, const char *why) {
    return base_fail(r->error, SIFR_USAGE, "%s: \"model_type\" \"%.60s\" is not supported: %s",
                     r->name, type, why);
}

/* What a folder has beside its text model, by the config's own sections, else by its type. */
static const char *name_towers(const model_reader *r, const char *type) {
    static const char *const hearing[] = {"qwen2_audio*", "granite_speech", "voxtral"};
    bool sees = model_member(r->json, "vision_config");
    bool hears = model_member(r->json, "audio_config");
    if (sees && hears) return "a vision tower and an audio tower (vision_config, audio_config)";
    if (sees) return "a vision tower (vision_config)";
    if (hears) return "an audio tower (audio_config)";
    for (size_t i = 0; i < sizeof hearing / sizeof *hearing; i++)
        if (matches(hearing[i], type)) return "an audio tower";
    return "a vision tower";
}

/* `text`: the type of the text model, where it is known. */
static sifr_status refuse_tower(const model_reader *r, const char *type, const char *text) {
    bool built = text && model_architecture_find(text);
    return base_fail(r->error, SIFR_USAGE,
                     "%s: \"model_type\" \"%.60s\" is not supported: it is more than a text model, "
                     "it has %s. Its text model alone, saved as a folder, %s%s%s",
                     r->name, type, name_towers(r, type),
                     built ? "works as model_type \"" : "is not supported either",
                     built ? text : "", built ? "\"" : "");
}

sifr_status model_refuse_type(const model_reader *r, const char *type) {
    char types[1024];
    const json_t *text = model_member(r->json, "text_config");
    const char *own = json_string_value(model_member(text, "model_type"));
    for (size_t i = 0; type && i < sizeof kinds / sizeof *kinds; i++)
        if (matches(kinds[i].type, type)) return refuse(r, type, kinds[i].why);
    for (size_t i = 0; type && i < sizeof towers / sizeof *towers; i++)
        if (matches(towers[i].type, type)) return refuse_tower(r, type, own ? own : towers[i].text);
    bool tower = model_member(r->json, "vision_config") || model_member(r->json, "audio_config");
    if (type && (text || tower)) {
        return refuse_tower(r, type, own);
    }
    model_architecture_list(types, sizeof types);
    if (type && model_member(r->json, "auto_map")) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"model_type\" \"%.60s\" is not supported: it comes with Python code "
                         "(\"auto_map\"), which is not run; supported are %s",
                         r->name, type, types);
    }
    return base_fail(r->error, SIFR_USAGE, "%s: \"model_type\" %s%.60s%s; supported are %s",
                     r->name, type ? "is \"" : "is missing", type ? type : "", type ? "\"" : "",
                     types);
}
