/* Which class of tokenizer a folder without tokenizer.json has, and from which file it is made: the
 * choice of transformers' AutoTokenizer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/heap.h"
#include "base/json.h"
#include "text/tokenizer/tokenizer_files.h"

#define NONE                                                                                       \
    { NULL, NULL, NULL, NULL, NULL, NULL, NULL }
#define END "<|endoftext|>"

/* The order of defaults: bos, eos, unk, sep, pad, cls, mask. */
static const text_class classes[] = {
    {TEXT_CLASS_BACKEND, "PreTrainedTokenizerFast", NULL, NONE},
    {TEXT_CLASS_LLAMA, "LlamaTokenizer", NULL, {"<s>", "</s>", "<unk>", NULL, NULL, NULL, NULL}},
    {TEXT_CLASS_GEMMA,
     "GemmaTokenizer",
     NULL,
     {"<bos>", "<eos>", "<unk>", NULL, "<pad>", NULL, "<mask>"}},
    {TEXT_CLASS_T5,
     "T5Tokenizer",
     "spiece.model",
     {NULL, "</s>", "<unk>", NULL, "<pad>", NULL, NULL}},
    {TEXT_CLASS_XLM_ROBERTA,
     "XLMRobertaTokenizer",
     "sentencepiece.bpe.model",
     {"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"}},
    {TEXT_CLASS_DEBERTA_V2,
     "DebertaV2Tokenizer",
     "spm.model",
     {"[CLS]", "[SEP]", "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"}},
    {TEXT_CLASS_BERT,
     "BertTokenizer",
     "vocab.txt",
     {NULL, NULL, "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"}},
    {TEXT_CLASS_GPT2, "GPT2Tokenizer", "vocab.json", {END, END, END, NULL, NULL, NULL, NULL}},
    {TEXT_CLASS_ROBERTA,
     "RobertaTokenizer",
     "vocab.json",
     {"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"}},
    {TEXT_CLASS_QWEN2, "Qwen2Tokenizer", "vocab.json", {NULL, END, END, NULL, END, NULL, NULL}},
    {TEXT_CLASS_CODEGEN, "CodeGenTokenizer", "vocab.json", {END, END, END, NULL, NULL, NULL, NULL}},
    {TEXT_CLASS_GPT_NEOX,
     "GPTNeoXTokenizer",
     "vocab.json",
     {END, END, END, NULL, "<|padding|>", NULL, NULL}},
};
enum { CLASS_COUNT = sizeof classes / sizeof *classes };

/* Other names of the same classes in transformers 5; each also with "Fast" behind it. */
static const struct {
    const char *name, *class;
} aliases[] = {
    {"TokenizersBackend", "PreTrainedTokenizerFast"},
    {"PreTrainedTokenizer", "PreTrainedTokenizerFast"},
    {"BloomTokenizer", "PreTrainedTokenizerFast"},
    {"Phi3Tokenizer", "LlamaTokenizer"},
    {"DistilBertTokenizer", "BertTokenizer"},
    {"ElectraTokenizer", "BertTokenizer"},
    {"BartTokenizer", "RobertaTokenizer"},
    {"LongformerTokenizer", "RobertaTokenizer"},
};

/* model_type -> class: text models of AutoTokenizer's table. One that is not listed leaves the
 * choice to tokenizer_config.json. */
static const struct {
    const char *class, *types;
} registered[] = {
    {"GPT2Tokenizer",
     " codegen dbrx gpt2 gpt_neo gptj jais2 opt phi starcoder2 hyperclovax_vision_v2 "},
    {"GPTNeoXTokenizer", " falcon_mamba gpt_neox mamba mamba2 mpt olmo olmoe rwkv xlstm "},
    {"Qwen2Tokenizer", " qwen2 qwen2_moe qwen3 qwen3_moe qwen3_next "},
    {"GemmaTokenizer",
     " gemma gemma2 gemma3 gemma3_text gemma3n gemma3n_text recurrent_gemma t5gemma "},
    {"T5Tokenizer", " t5 mt5 switch_transformers "},
    {"XLMRobertaTokenizer", " xlm-roberta xmod gte jina_embeddings_v3 "},
    {"DebertaV2Tokenizer", " deberta-v2 "},
    {"BertTokenizer",
     " bert convbert distilbert electra ernie megatron-bert nezha nomic_bert qdqbert squeezebert "},
    {"RobertaTokenizer",
     " roberta bart data2vec-text ibert longformer mega mra roberta-prelayernorm "},
    {"LlamaTokenizer", " idefics idefics2 "},
    {"PreTrainedTokenizerFast",
     " flex_olmo glm glm4 glm4_moe gpt_bigcode granite granitemoe granitemoehybrid "
     "granitemoeshared "
     "ministral ministral3 mistral mistral3 mixtral modernbert modernbert-decoder nemotron "
     "nystromformer olmo2 olmo3 olmo_hybrid persimmon phi3 phi3_v phimoe stablelm umt5 internlm2 "
     "internlm3 jamba arctic minicpm3 ernie4_5 ernie4_5_moe xlm-roberta-xl minimax_m2 smolvlm "},
    {"AlbertTokenizer", " albert yoso "},
    {"CamembertTokenizer", " camembert "},
    {"CohereTokenizer", " cohere cohere2 "},
    {"DebertaTokenizer", " deberta "},
    {"MPNetTokenizer", " mpnet "},
    {"Qwen3_5Tokenizer", " qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text "},
    {"XLNetTokenizer", " xlnet "},
};
/* Of these, what tokenizer_config.json says is known to be wrong where it differs. */
static const char mistaken[] = " qwen2 qwen3_5 qwen3_5_moe qwen3_5_moe_text hyperclovax_vision_v2 ";

/* Is `word` one of those between blanks? */
static bool among(const char *words, const char *word) {
    size_t size = strlen(word);
    if (!size || strchr(word, ' ')) return false;
    for (const char *at = words; (at = strstr(at, word)); at++) {
        if (at[-1] == ' ' && at[size] == ' ') return true;
    }
    return false;
}

static size_t without_fast(const char *name) {
    size_t size = strlen(name);
    return size > 4 && strcmp(name + size - 4, "Fast") == 0 ? size - 4 : size;
}

static bool same_name(const char *a, const char *b) {
    size_t size = without_fast(a);
    return size == without_fast(b) && memcmp(a, b, size) == 0;
}

static const text_class *find_class(const char *name) {
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        if (same_name(name, aliases[i].name)) name = aliases[i].class;
    }
    for (size_t i = 0; i < CLASS_COUNT; i++) {
        if (same_name(name, classes[i].name)) return &classes[i];
    }
    return NULL;
}

sifr_status text_files_class(text_files *files, const char *model_type, const char *class_name,
                             bool own_code, sifr_error *error) {
    const char *own = NULL, *chosen = class_name;
    for (size_t i = 0; i < sizeof registered / sizeof *registered && model_type; i++) {
        if (among(registered[i].types, model_type)) own = registered[i].class;
    }
    if (!class_name)
        chosen = own ? own : "PreTrainedTokenizerFast";
    else if (own && !own_code && !same_name(own, class_name) &&
             (find_class(own) == &classes[0] || among(mistaken, model_type)))
        chosen = own;
    files->class = find_class(chosen);
    if (files->class) return SIFR_OK;
    char names[512] = "";
    for (size_t i = 0; i < CLASS_COUNT; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", classes[i].name);
    }
    return base_fail(error, SIFR_USAGE,
                     "%s: the tokenizer class \"%.60s\" is not supported yet without a "
                     "tokenizer.json (supported: %s); save the tokenizer with transformers, which "
                     "writes one",
                     files->folder ? files->folder : files->config_path, chosen, names);
}

/* The last is read by no class, but its name belongs into the refusal. */
static const char *const names[] = {
    "tokenizer.model",         "tiktoken.model", "spiece.model", "spm.model",
    "sentencepiece.bpe.model", "vocab.txt",      "vocab.json",   "tekken.json"};

const char *text_tokenizer_other_file(const char *folder) {
    char path[BASE_PATH_LENGTH];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (base_path_join(path, folder, names[i], NULL) == SIFR_OK && base_is_file(path))
            return names[i];
    }
    return NULL;
}

static sifr_status hash_file(const char *folder, const char *name, bool *there, uint64_t *hash,
                             sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    base_map map;
    BASE_TRY(base_path_join(path, folder, name, error));
    *there = base_is_file(path);
    if (!*there) return SIFR_OK;
    BASE_TRY(base_map_file(path, &map, error));
    *hash = base_hash_seeded(map.data, map.size, *hash);
    base_unmap(&map);
    return SIFR_OK;
}

sifr_status text_tokenizer_hash(const char *folder, uint64_t seed, uint64_t *out,
                                sifr_error *error) {
    static const char *const others[] = {"merges.txt", "tokenizer_config.json",
                                         "special_tokens_map.json", "added_tokens.json",
                                         "config.json"};
    /* Changed where what is made of the same files changes, so that no stored ids are taken for it.
     */
    static const char rules[] = "2: sentencepiece's own normalizer";
    bool there, any = false;
    *out = seed;
    BASE_TRY(hash_file(folder, "tokenizer.json", &there, out, error));
    if (there) return SIFR_OK;
    *out = base_hash_seeded(rules, sizeof rules, *out);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        BASE_TRY(hash_file(folder, names[i], &there, out, error));
        any = any || there;
    }
    if (!any)
        return base_fail(error, SIFR_FAILED,
                         "%s/tokenizer.json: there is no such file; text needs the model's "
                         "tokenizer, so add it, or give a token store",
                         folder);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        *out = base_hash_seeded(&i, sizeof i, *out); /* the same bytes under another name differ */
        BASE_TRY(hash_file(folder, others[i], &there, out, error));
    }
    return SIFR_OK;
}

/* tokenizer.model comes first for every class; else the class's own file. */
static sifr_status find_file(text_files *files, sifr_error *error) {
    const char *const wanted[] = {files->class->file, names[0], names[1]};
    bool own_first = files->class->file && strncmp(files->class->file, "vocab", 5) == 0;
    for (size_t i = 0; i < 4; i++) {
        size_t at = own_first ? i : i < 2 ? i + 1 : 0;
        if (i == 3 || !wanted[at]) continue;
        BASE_TRY(base_path_join(files->vocabulary_path, files->folder, wanted[at], error));
        if (base_is_file(files->vocabulary_path)) return SIFR_OK;
    }
    const char *there = text_tokenizer_other_file(files->folder);
    return base_fail(error, SIFR_FAILED,
                     "%s: its tokenizer is a %s, which is made from %s, but the folder has %s; add "
                     "that file, or a tokenizer.json",
                     files->folder, files->class->name,
                     files->class->file ? files->class->file : "tokenizer.model",
                     there ? there : "no vocabulary");
}

/* A string of a JSON object, or NULL. */
static const char *text_of(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

static sifr_status choose_class(text_files *files, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    json_t *config = NULL;
    BASE_TRY(base_path_join(path, files->folder, "config.json", error));
    if (base_is_file(path)) BASE_TRY(base_json_load(path, 16 << 20, &config, error));
    const char *name = text_of(files->settings, "tokenizer_class");
    if (!name) name = text_of(config, "tokenizer_class");
    const json_t *code = json_object_get(files->settings, "auto_map");
    sifr_status status =
        text_files_class(files, text_of(config, "model_type"), name, code != NULL, error);
    json_decref(config);
    return status;
}

static void free_files(text_files *files) {
    json_decref(files->settings);
    json_decref(files->decoder);
    json_decref(files->specific);
    json_decref(files->extra);
    json_decref(files->root);
    json_decref(files->added_list);
    text_table_free(&files->words);
    text_table_free(&files->added);
    free(files->word_ids);
    free(files);
}

/* What is left once class, settings and vocabulary are known. */
static sifr_status make(text_files *files, json_t **root, sifr_error *error) {
    BASE_TRY(text_files_model(files, error));
    BASE_TRY(text_files_add_all(files, error));
    BASE_TRY(text_files_post(files, error));
    *root = json_incref(files->root);
    return SIFR_OK;
}

sifr_status text_tokenizer_convert(const char *folder, json_t **root, char source[BASE_PATH_LENGTH],
                                   char **eos, sifr_error *error) {
    text_files *files;
    BASE_TRY(base_alloc(1, sizeof *files, &files, error));
    files->folder = folder;
    *eos = NULL;
    sifr_status status = text_files_settings(files, error);
    if (status == SIFR_OK) status = choose_class(files, error);
    if (status == SIFR_OK) status = find_file(files, error);
    if (status == SIFR_OK) status = make(files, root, error);
    if (status == SIFR_OK) {
        const char *content = text_files_special(files, "eos_token");
        memcpy(source, files->vocabulary_path, BASE_PATH_LENGTH);
        if (content) status = base_copy_text(content, strlen(content), eos, error);
        if (status != SIFR_OK) json_decref(*root);
    }
    free_files(files);
    return status;
}

sifr_status text_tokenizer_convert_bytes(const void *bytes, size_t size, json_t *settings,
                                         const char *name, json_t **root, sifr_error *error) {
    text_files *files;
    sifr_status status = base_alloc(1, sizeof *files, &files, error);
    if (status != SIFR_OK) return json_decref(settings), status;
    files->bytes = bytes;
    files->byte_count = size;
    files->settings = settings;
    snprintf(files->config_path, sizeof files->config_path, "%s", name);
    snprintf(files->vocabulary_path, sizeof files->vocabulary_path, "%s", name);
    status = text_files_settings(files, error);
    if (status == SIFR_OK)
        status = text_files_class(files, NULL, text_of(settings, "tokenizer_class"), false, error);
    if (status == SIFR_OK) status = make(files, root, error);
    free_files(files);
    return status;
}
