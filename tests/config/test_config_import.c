/* Configs of other programs: where each key goes, what has no counterpart, what is refused. Whole
 * files are those of test_config_real.c. */
#include "config/import_wanted.h"

/* What axolotl's types do not read of rows: of Alpaca's, with a text for the system, without one
 * for the input; of messages; of preferences; and TRL of any. */
/* And names of the file's own that other fields are given. */
#define NO_MARKS_NOR(names) "\"tools\", \"label\", \"kto_tag\", " names "]"
#define NO_MARKS "\"tools\", \"label\", \"kto_tag\"]"
#define OF_ALPACA                                                                                  \
    "\"ignore_fields\": [\"context\", \"system\", \"system_prompt\", \"history\", " NO_MARKS
#define WITHOUT_INPUT                                                                              \
    "\"ignore_fields\": [\"input\", \"context\", \"system\", \"system_prompt\", "                  \
    "\"history\", " NO_MARKS
#define OF_MESSAGES "\"ignore_fields\": [\"system_prompt\", \"functions\", \"label\", \"kto_tag\"]"
#define OF_MESSAGES_NOR(name)                                                                      \
    "\"ignore_fields\": [\"system_prompt\", \"functions\", \"label\", \"kto_tag\", " name "]"
#define OF_TRL                                                                                     \
    "\"ignore_fields\": [\"system\", \"system_prompt\", \"input\", \"instruction\", "              \
    "\"question\", "                                                                               \
    "\"context\", \"history\", \"label\", \"kto_tag\"]"
#define OF_PAIRS                                                                                   \
    "\"ignore_fields\": [\"system\", \"input\", \"tools\", \"instruction\", \"question\", "        \
    "\"context\", "                                                                                \
    "\"history\", \"system_prompt\"]"

static void arguments_of_the_trainer(void **state) {
    (void)state;
    makes("output_dir: out\nlearning_rate: 1e-4\n",
          "{\"sifr\": {\"output\": \"out\", \"learning_rate\": 1e-4, \"lr_scheduler_type\": "
          "\"linear\"}}",
          0);
    makes("{\"output_dir\": \"o\", \"weight_decay\": 0.1, \"adam_beta2\": \"0.95\", \"bf16\": true,"
          "\"lr_scheduler_type\": \"polynomial\", \"lr_scheduler_kwargs\": \"{\\\"power\\\": 2}\","
          "\"eval_steps\": 5, \"save_steps\": 0.5, \"gradient_checkpointing\": true}",
          "{\"sifr\": {\"output\": \"o\", \"lr_scheduler_type\": \"polynomial\", "
          "\"lr_scheduler_kwargs\": {\"power\": 2}, \"recompute\": \"unit\", \"no_decay\": "
          "\"transformers\", \"learning_rate\": 5e-5}, \"bf16\": {\"enabled\": true}, "
          "\"optimizer\": {\"params\": {\"weight_decay\": "
          "0.1, \"betas\": [0.9, 0.95]}}}",
          1);
    makes("output_dir: o\neval_strategy: steps\neval_steps: 5\nsave_strategy: 'no'\nsave_steps: 9\n"
          "lr_scheduler_type: constant\n",
          "{\"sifr\": {\"output\": \"o\", \"eval_steps\": 5, \"lr_scheduler_type\": \"constant\"}}",
          0);
    makes("output_dir: o\nlr_scheduler_type: constant\ndataloader_drop_last: true\n",
          "{\"sifr\": {\"output\": \"o\", \"lr_scheduler_type\": \"constant\"}, "
          "\"dataloader_drop_last\": true}",
          0);
    says("output_dir: o\nreport_to: wandb\n",
         "report_to = \"wandb\": no effect here: its package reads metrics.jsonl "
         "(docs/monitoring.md)\n");
    makes("output_dir: o\nfp16_backend: auto\nlabel_smoothing_factor: 0.0\nadam_beta1: 0.0\n"
          "train_sampling_strategy: group_by_length\n",
          "{\"sifr\": {\"output\": \"o\", \"lr_scheduler_type\": \"linear\", \"group_by_length\": "
          "true, \"learning_rate\": 5e-5}, \"optimizer\": {\"params\": {\"betas\": [0.0, 0.999]}}}",
          0);
    refuses("output_dir: o\ntrain_sampling_strategy: sequential\n",
            "a.yaml: train_sampling_strategy is \"sequential\": rows are drawn at random, or by "
            "length; take the key out, change it, or pass --allow KEY");
}

/* What a DeepSpeed config gives counts; "auto" is filled in. */
static void with_a_deepspeed_config(void **state) {
    (void)state;
    makes(
        "output_dir: o\nlearning_rate: 1e-4\nmax_grad_norm: 0.5\nweight_decay: 0.0\nwarmup_ratio: "
        "0.1\nlr_scheduler_type: cosine\ndeepspeed: {gradient_clipping: auto, zero_optimization: "
        "{stage: 2}, optimizer: {type: AdamW, params: {lr: auto, weight_decay: 0.3}}, scheduler: "
        "{type: WarmupLR, params: {warmup_num_steps: auto}}}\n",
        "{\"gradient_clipping\": 0.5, \"zero_optimization\": {\"stage\": 2}, \"optimizer\": "
        "{\"type\": \"AdamW\", \"params\": {\"lr\": \"auto\", \"weight_decay\": 0.3}}, "
        "\"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\"warmup_num_steps\": \"auto\"}}, "
        "\"sifr\": {\"output\": \"o\", \"learning_rate\": 1e-4, \"warmup_ratio\": 0.1}}",
        2);
    makes("output_dir: o\ndeepspeed: '{gradient_clipping: 2}'\nmax_grad_norm: 2\n",
          "{\"gradient_clipping\": 2, \"sifr\": {\"output\": \"o\", \"lr_scheduler_type\": "
          "\"linear\"}}",
          0);
    import_case c = import("output_dir: o\ndeepspeed: nowhere.json\n");
    assert_int_equal(c.status, SIFR_FAILED);
    assert_non_null(strstr(c.error.message, "nowhere.json"));
    refuses("output_dir: o\ndeepspeed: [1]\n",
            "a.yaml: deepspeed: a DeepSpeed config is an object {…}");
}

static void axolotl(void **state) {
    (void)state;
    makes("base_model: m\nmicro_batch_size: 2\nnum_epochs: 1\nbf16: auto\nsequence_len: 64\n"
          "datasets: [{path: a.txt, type: completion}, {path: b.txt}]\n",
          "{\"sifr\": {\"model\": \"m\", \"per_device_train_batch_size\": 2, \"num_train_epochs\": "
          "1, \"seq_length\": 64, \"data\": [\"a.txt\", \"b.txt\"], \"lr_scheduler_type\": "
          "\"cosine\"}, \"bf16\": {\"enabled\": true}}",
          0);
    makes("base_model: m\nlr_scheduler: linear\ncosine_min_lr_ratio: 0.1\nbf16: true\n",
          "{\"sifr\": {\"model\": \"m\", \"lr_scheduler_type\": \"linear\"}, \"bf16\": "
          "{\"enabled\": true}}",
          0);
    makes("base_model: m\nlr_scheduler: cosine\ncosine_min_lr_ratio: 0.1\n",
          "{\"sifr\": {\"model\": \"m\", \"lr_scheduler_type\": \"cosine_with_min_lr\", "
          "\"lr_scheduler_kwargs\": {\"min_lr_rate\": 0.1}}}",
          0);
    makes("base_model: m\nadapter: lora\nlora_r: 8\nlora_alpha: 16\nlora_dropout: 0.05\n"
          "lora_target_linear: true\nlora_modules_to_save: [lm_head]\npeft_use_rslora: true\n",
          "{\"sifr\": {\"model\": \"m\", \"lr_scheduler_type\": \"cosine\", \"lora\": {\"r\": 8, "
          "\"lora_alpha\": 16, \"lora_dropout\": 0.05, \"target_modules\": \"all-linear\", "
          "\"modules_to_save\": [\"lm_head\"], \"use_rslora\": true}}}",
          0);
    makes("base_model: m\nadapter:\nlora_r: 8\n",
          "{\"sifr\": {\"model\": \"m\", \"lr_scheduler_type\": \"cosine\"}}", 0);
    makes("base_model: m\nadapter: lora\nlora_model_dir: a\nlora_r: 8\n",
          "{\"sifr\": {\"model\": \"m\", \"lr_scheduler_type\": \"cosine\", \"adapter\": \"a\"}}",
          0);
    makes("base_model: m\nadapter: qlora\nload_in_4bit: true\nlora_r: 8\nlora_alpha: 16\n",
          "{\"sifr\": {\"model\": \"m\", \"lr_scheduler_type\": \"cosine\", \"lora\": {\"r\": 8, "
          "\"lora_alpha\": 16},"
          "\"quantization\": {\"load_in_4bit\": true, \"bnb_4bit_quant_type\": \"nf4\","
          "\"bnb_4bit_use_double_quant\": true}}}",
          0);
    makes("base_model: m\nsequence_parallel_degree: 4\ntensor_parallel_size: 2\n",
          "{\"sifr\": {\"model\": \"m\", \"lr_scheduler_type\": \"cosine\", "
          "\"context_parallel\": {\"size\": 4}}, \"tensor_parallel\": {\"size\": 2}}",
          0);
    makes("base_model: m\ncontext_parallel_size: 2\n",
          "{\"sifr\": {\"model\": \"m\", \"lr_scheduler_type\": \"cosine\", "
          "\"context_parallel\": {\"size\": 2}}}",
          0);
    refuses(
        "base_model: m\nadapter: llama-adapter\noptimizer: lion\n",
        "2 faults: (1) a.yaml: adapter is \"llama-adapter\": lora and qlora are the only adapters "
        "supported yet; take the key out, change it, or pass --allow KEY (2) a.yaml: optimizer is "
        "\"lion\": this "
        "optimizer is "
        "not supported yet (supported: adamw_torch, adamw_8bit, adafactor, sgd, adagrad, "
        "lion_32bit, schedule_free_adamw); take the key out, change it, or pass --allow KEY");
}

/* Optimizers by the Trainer's names, with what the Trainer gives each. */
static void optimizers(void **state) {
    (void)state;
    makes("output_dir: o\noptim: paged_adamw_8bit\nadam_epsilon: 1e-7\n",
          "{\"sifr\": {\"output\": \"o\", \"lr_scheduler_type\": \"linear\", \"learning_rate\": "
          "5e-5}, "
          "\"optimizer\": {\"type\": \"AdamW8bit\", \"params\": {\"eps\": 1e-7, \"weight_decay\": "
          "0.0}}}",
          0);
    makes(
        "output_dir: o\noptim: sgd\noptim_args: momentum = 0.9, nesterov=True\nadam_beta1: 0.8\n"
        "adam_epsilon: 1e-7\nlearning_rate: 0.1\n",
        "{\"sifr\": {\"output\": \"o\", \"lr_scheduler_type\": \"linear\", \"learning_rate\": "
        "0.1}, "
        "\"optimizer\": {\"type\": \"SGD\", \"params\": {\"momentum\": 0.9, \"nesterov\": true}}}",
        0);
    makes("output_dir: o\noptim: adagrad\noptim_args: {lr_decay: 0.5}\n",
          "{\"sifr\": {\"output\": \"o\", \"lr_scheduler_type\": \"linear\", \"learning_rate\": "
          "5e-5}, "
          "\"optimizer\": {\"type\": \"Adagrad\", \"params\": {\"lr_decay\": 0.5}}}",
          0);
    /* The Trainer gives Lion Adam's betas. */
    makes("output_dir: o\noptim: lion_32bit\n",
          "{\"sifr\": {\"output\": \"o\", \"lr_scheduler_type\": \"linear\", \"learning_rate\": "
          "5e-5}, "
          "\"optimizer\": {\"type\": \"Lion\", \"params\": {\"betas\": [0.9, 0.999]}}}",
          0);
    makes(
        "output_dir: o\noptim: schedule_free_adamw\noptim_args: r=1.5\nwarmup_steps: 10\n"
        "lr_scheduler_type: constant\n",
        "{\"sifr\": {\"output\": \"o\", \"lr_scheduler_type\": \"constant\", \"warmup_steps\": 10, "
        "\"learning_rate\": 5e-5}, \"optimizer\": {\"type\": \"AdamWScheduleFree\", \"params\": "
        "{\"warmup_steps\": 10, \"r\": 1.5}}}",
        0);
    makes("output_dir: o\noptim: adafactor\nlearning_rate: 1e-3\nadam_beta1: 0.8\n",
          "{\"sifr\": {\"output\": \"o\", \"lr_scheduler_type\": \"linear\", \"learning_rate\": "
          "1e-3}, "
          "\"optimizer\": {\"type\": \"Adafactor\", \"params\": {\"scale_parameter\": false, "
          "\"relative_step\": false}}}",
          0);
    /* DeepSpeed's optimizer acts. */
    makes("output_dir: o\noptim: adafactor\nlr_scheduler_type: constant\ndeepspeed: {optimizer: "
          "{type: "
          "Lion, params: {lr: 1e-4}}}\n",
          "{\"sifr\": {\"output\": \"o\", \"lr_scheduler_type\": \"constant\"}, \"optimizer\": "
          "{\"type\": \"Lion\", \"params\": {\"lr\": 1e-4}}}",
          0);
    says("output_dir: o\noptim: adamw_torch\noptim_args: a=1\n",
         "optim_args = \"a=1\": no effect here: the Trainer gives this optimizer none of them\n");
    refuses("output_dir: o\noptim: sgd\noptim_args: momentum=0.9,differentiable=True\n",
            "a.yaml: optim_args is \"momentum=0.9,differentiable=True\": not all of these are "
            "parameters of this optimizer here; see docs/optimizers.md; take the key out, change "
            "it, or "
            "pass --allow KEY");
}

/* DPO and ORPO, whose micro batches count pairs. */
static void preferences(void **state) {
    (void)state;
    makes("output_dir: o\nloss_type: [ipo]\nbeta: 0.2\nper_device_train_batch_size: 3\n"
          "learning_rate: 1e-5\nmax_length: 64\nbf16: false\n"
          "deepspeed: {train_batch_size: 12, train_micro_batch_size_per_gpu: auto}\n",
          "{\"sifr\": {\"output\": \"o\", \"lr_scheduler_type\": \"linear\", \"preference\": "
          "{\"loss_type\": \"ipo\", \"beta\": 0.2}, \"per_device_train_batch_size\": 6, "
          "\"learning_rate\": 1e-5, \"seq_length\": 64}, \"bf16\": {\"enabled\": false}, "
          "\"train_batch_size\": 24, \"train_micro_batch_size_per_gpu\": \"auto\"}",
          0);
    makes("output_dir: o\nloss_type: sigmoid\nbeta: 0.1\nper_device_train_batch_size: 1\n"
          "learning_rate: 1e-6\nmax_length: 64\nbf16: false\ndisable_dropout: false\n",
          "{\"sifr\": {\"output\": \"o\", \"lr_scheduler_type\": \"linear\", \"preference\": "
          "{\"loss_type\": \"sigmoid\", \"beta\": 0.1, \"dropout\": true}, "
          "\"per_device_train_batch_size\": 2, \"learning_rate\": 1e-6, \"seq_length\": 64}, "
          "\"bf16\": {\"enabled\": false}}",
          0);
    says("output_dir: o\nloss_type: ipo\ndisable_dropout: true\n",
         "disable_dropout = true: dropout is off here too\n");
    says("output_dir: o\nloss_type: nll\ndisable_dropout: true\n",
         "disable_dropout = true: no effect here: dropout is switched off for preferences alone\n");
    makes("model_name_or_path: m\nstage: dpo\nfinetuning_type: full\ncutoff_len: 64\n",
          "{\"sifr\": {\"model\": \"m\", \"lr_scheduler_type\": \"linear\", \"preference\": "
          "{\"loss_type\": \"sigmoid\"}, \"per_device_train_batch_size\": 16, \"seq_length\": "
          "64}}",
          0);
    makes("model_name_or_path: m\ndpo_beta: 0.3\nper_device_train_batch_size: 1\nwarmup_steps: 2\n"
          "learning_rate: 1e-6\nnum_train_epochs: 1\nclip_grad_norm: 1\n",
          "{\"sifr\": {\"model\": \"m\", \"lr_scheduler_type\": \"linear\", \"preference\": "
          "{\"loss_type\": \"sigmoid\", \"beta\": 0.3}, \"per_device_train_batch_size\": 2, "
          "\"warmup_steps\": 2, \"learning_rate\": 1e-6, \"num_train_epochs\": 1}, "
          "\"gradient_clipping\": 1}",
          0);
    makes(
        "base_model: m\nrl: orpo\norpo_alpha: 0.2\nmicro_batch_size: 1\ndatasets: [{path: a.jsonl, "
        "type: {field_prompt: q, field_chosen: chosen}}]\n",
        "{\"sifr\": {\"model\": \"m\", \"lr_scheduler_type\": \"cosine\", \"preference\": "
        "{\"loss_type\": \"orpo\", \"beta\": 0.2}, \"per_device_train_batch_size\": 2, "
        "\"dataset\": "
        "[{\"path\": \"a.jsonl\", \"type\": \"preference\", \"fields\": {\"prompt\": "
        "\"q\"}, \"ignore_fields\": [\"system\", \"input\", \"tools\", \"instruction\", "
        "\"question\", "
        "\"context\", \"history\", \"system_prompt\", \"prompt\"]}]}}",
        0);
    says("base_model: m\nrl: dpo\ndatasets: [{path: a.jsonl, type: chatml.intel}]\n",
         "not taken over: axolotl writes rows of this type in ChatML by itself: give the file to "
         "--data, and chatml to --chat-template\n");
    says("output_dir: o\nloss_type: nll\n",
         "loss_type = \"nll\": no effect here: the loss is the cross entropy\n");
    says("output_dir: o\nstage: sft\npref_beta: 0.1\n",
         "pref_beta = 0.1: no effect here: stage is not dpo\n");
    says("output_dir: o\nbeta: 0.1\n",
         "its default of loss_type = \"sigmoid\": sifr.preference.loss_type\n");
    says("output_dir: o\nbeta: 0.0\nlabel_smoothing: 0.0\n", "beta = 0: sifr.preference.beta\n");
    refuses("output_dir: o\nbeta: 0.1\nlabel_smoothing: 0.1\n",
            "a.yaml: label_smoothing is 0.1: this preference training is not supported yet "
            "(supported: DPO by sigmoid, hinge and ipo; ORPO); take the key out, change it, or "
            "pass --allow KEY");
    refuses("output_dir: o\nloss_type: [sigmoid, bco_pair]\n",
            "a.yaml: loss_type is [\"sigmoid\", \"bco_pair\"]: this loss is not supported yet "
            "(supported: nll, chunked_nll, sigmoid, hinge, ipo, orpo); take the key out, change "
            "it, or pass --allow KEY");
    refuses(
        "output_dir: o\nstage: kto\n",
        "a.yaml: stage is \"kto\": this kind of training is not supported yet (supported: pt, sft, "
        "dpo); take the key out, change it, or pass --allow KEY");
    refuses("output_dir: o\ncenter_rewards_coefficient: null\n",
            "a.yaml: center_rewards_coefficient is null: it is of reward models, which are not "
            "supported yet; take the key out, change it, or pass --allow KEY");
    refuses(
        "base_model: m\nrl: grpo\n",
        "a.yaml: rl is \"grpo\": this loss is not supported yet (supported: dpo, ipo, orpo); take "
        "the key out, change it, or pass --allow KEY");
    refuses("output_dir: o\nloss_type: sigmoid\nref_model: big\n",
            "a.yaml: ref_model is \"big\": make the reference's scores with `sifr score`, and give "
            "them as sifr.preference.reference; take the key out, change it, or pass --allow KEY");
}

/* TRL's arguments and LLaMA-Factory's. */
static void adapters(void **state) {
    (void)state;
    makes("model_name_or_path: m\nuse_peft: true\nlora_target_modules: [q_proj, v_proj]\n",
          "{\"sifr\": {\"model\": \"m\", \"lr_scheduler_type\": \"linear\", \"lora\": {"
          "\"target_modules\": [\"q_proj\", \"v_proj\"], \"r\": 16, \"lora_alpha\": 32, "
          "\"lora_dropout\": 0.05}}}",
          0);
    makes("model_name_or_path: m\nfinetuning_type: lora\nlora_rank: 4\nlora_target: q_proj,v_proj\n"
          "additional_target: embed_tokens, lm_head\n",
          "{\"sifr\": {\"model\": \"m\", \"lr_scheduler_type\": \"linear\", \"lora\": {\"r\": 4, "
          "\"target_modules\": [\"q_proj\", \"v_proj\"], \"modules_to_save\": "
          "[\"embed_tokens\", \"lm_head\"], \"lora_alpha\": 8}}}",
          0);
    makes("model_name_or_path: m\nuse_peft: true\nuse_dora: true\nlora_r: 4\n",
          "{\"sifr\": {\"model\": \"m\", \"lr_scheduler_type\": \"linear\", \"lora\": {\"r\": 4, "
          "\"use_dora\": true, \"lora_alpha\": 32, \"lora_dropout\": 0.05}}}",
          0);
    makes("model_name_or_path: m\nfinetuning_type: lora\n",
          "{\"sifr\": {\"model\": \"m\", \"lr_scheduler_type\": \"linear\", \"lora\": {\"r\": 8, "
          "\"lora_alpha\": 16, \"target_modules\": \"all-linear\"}}}",
          0);
    makes("base_model: m\nadapter: lora\nlora_r: 4\nlora_alpha: 8\npeft_init_lora_weights: "
          "false\npeft_layers_pattern: "
          "[h]\npeft_layers_to_transform: [1]\n",
          "{\"sifr\": {\"model\": \"m\", \"lr_scheduler_type\": \"cosine\", \"lora\": {\"r\": 4, "
          "\"lora_alpha\": 8, \"init_lora_weights\": false, \"layers_pattern\": [\"h\"], "
          "\"layers_to_transform\": "
          "[1]}}}",
          0);
    refuses(
        "base_model: m\nadapter: lora\nlora_r: 4\nlora_alpha: 8\npeft_init_lora_weights: pissa\n",
        "a.yaml: peft_init_lora_weights is \"pissa\": adapters begin by true, false or gaussian "
        "alone; take the key out, change it, or pass --allow KEY");
    refuses("model_name_or_path: m\nfinetuning_type: oft\n",
            "a.yaml: finetuning_type is \"oft\": only full training and LoRA are supported yet; "
            "take the key out, change it, or pass --allow KEY");
}

/* axolotl's own texts, as its prompters write them. */
static void texts_of_axolotl(void **state) {
    (void)state;
    static const struct {
        const char *set, *source;
    } cases[] = {
        {"type: alpaca",
         "\"type\": \"alpaca\", \"format\": \"Below is an instruction that describes a task, "
         "paired with an input that provides further context. Write a response that appropriately "
         "completes the request.\\n\\n### Instruction:\\n{instruction}\\n\\n### "
         "Input:\\n{input}\\n\\n### Response:\\n\", \"no_input_format\": \"Below is an instruction "
         "that describes a task. Write a response that appropriately completes the "
         "request.\\n\\n### Instruction:\\n{instruction}\\n\\n### Response:\\n\", " OF_ALPACA},
        {"type: context_qa.load",
         "\"type\": \"alpaca\", \"fields\": {\"instruction\": \"question\", \"input\": "
         "\"article\", "
         "\"output\": \"answer\"}, \"format\": \"SYSTEM: Use the following contextual information "
         "to "
         "concisely answer the question.\\n\\nUSER: {input}\\n===\\n{instruction}\\nASSISTANT:\", "
         "\"ignore_fields\": [\"input\", \"context\", \"system\", \"system_prompt\", "
         "\"history\", " NO_MARKS_NOR("\"instruction\", \"output\"")},
        {"type: alpaca_w_system.load_open_orca_chatml",
         "\"type\": \"alpaca\", \"fields\": {\"instruction\": \"question\", \"output\": "
         "\"response\", \"system\": \"system_prompt\"}, \"format\": "
         "\"<|im_start|>user\\n{instruction}<|im_end|>\\n<|im_start|>assistant\\n\", "
         "\"system_format\": \"<|im_start|>system\\n{system}<|im_end|>\\n\", \"ignore_fields\": "
         "[\"input\", \"context\", \"system\", \"history\", " NO_MARKS_NOR(
             "\"instruction\", \"output\"")},
        {"type: {field_instruction: q, field_output: a, format: '[INST] {instruction} [/INST]'}",
         "\"type\": \"alpaca\", \"fields\": {\"instruction\": \"q\", \"output\": \"a\"}, "
         "\"format\": \"[INST] {instruction} [/INST]\", \"ignore_fields\": [\"input\", "
         "\"context\", "
         "\"system\", \"system_prompt\", \"history\", " NO_MARKS_NOR(
             "\"instruction\", \"output\"")},
        {"type: {field_instruction: instruction, field_input: c, field_output: output, format: "
         "'{instruction} {input}', no_input_format: '{instruction}', system_format: '<{system}> ', "
         "system_prompt: 'Be {kind}.'}",
         "\"type\": \"alpaca\", \"fields\": {\"input\": \"c\"}, \"format\": \"<Be {{kind}}.> "
         "{instruction} {input}\", \"no_input_format\": \"<Be {{kind}}.> "
         "{instruction}\", " WITHOUT_INPUT},
        {"type: {field_instruction: instruction, field_output: output, field_system: s, format: "
         "'{instruction}', system_format: '<{system}> '}",
         "\"type\": \"alpaca\", \"fields\": {\"system\": \"s\"}, \"format\": \"{instruction}\", "
         "\"system_format\": \"<{system}> \", " WITHOUT_INPUT},
        {"type: chat_template, field_messages: turns, message_property_mappings: {role: from, "
         "content: value}",
         "\"type\": \"sharegpt\", \"fields\": {\"conversations\": \"turns\"}, " OF_MESSAGES_NOR(
             "\"conversations\"")},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char yaml[1024], made[2048];
        snprintf(yaml, sizeof yaml, "base_model: m\ndatasets: [{path: a.jsonl, %s}]\n",
                 cases[i].set);
        snprintf(made, sizeof made,
                 "{\"sifr\": {\"model\": \"m\", \"lr_scheduler_type\": \"cosine\", \"dataset\": "
                 "[{\"path\": \"a.jsonl\", %s}]}}",
                 cases[i].source);
        makes(yaml, made, 0);
    }
}

static void no_form_of_axolotl(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"type: context_qa.load_v2",
         "its answers begin with words of axolotl's own, which are learned there"},
        {"type: input_output", "rows of segments that are learned or not have no form here"},
        {"type: metharme", "it writes tokens of its own around turns"},
        {"type: stepwise_supervised", "reward models are not supported yet"},
        {"type: explainchoice", "its questions have lists of choices"},
        {"type: chat_template, message_property_mappings: {role: speaker, content: text}",
         "messages here have role and content, or from and value"},
        {"type: mine.load", "rows of this type have no form here; give the file to --data, or name "
                            "its fields and format in sifr.dataset"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char yaml[256];
        snprintf(yaml, sizeof yaml, "base_model: m\ndatasets: [{path: a.jsonl, %s}]\n",
                 cases[i][0]);
        says(yaml, cases[i][1]);
    }
    refuses("base_model: m\ndatasets: [{path: a.jsonl, type: chat_template, split_thinking: true, "
            "split: train}]\n",
            "a.yaml: datasets[0].split_thinking is true: a source of rows has no such key here; "
            "take the key out, change it, or pass --allow KEY");
    says("base_model: m\ndatasets: [{path: a.jsonl, type: sharegpt, conversation: chatml}]\n",
         "datasets[0].conversation = \"chatml\": not taken over: the chat template is the model "
         "folder's\n");
}

static void rows_to_fine_tune_on(void **state) {
    (void)state;
    makes(
        "base_model: m\ndatasets: [{path: a.jsonl, type: chat_template}, {path: b.json.gz, type: "
        "chat_template, field_messages: conversations}, {path: json, data_files: [c.jsonl], type: "
        "'alpaca_chat.load_no_prompt'}]\ntest_datasets: [{path: t.jsonl}]\ntrain_on_inputs: true\n"
        "sample_packing: true\nchat_template: tokenizer_default\n",
        "{\"sifr\": {\"model\": \"m\", \"dataset\": [{\"path\": \"a.jsonl\", \"type\": "
        "\"messages\", " OF_MESSAGES
        "}, {\"path\": \"b.json.gz\", \"type\": \"sharegpt\", " OF_MESSAGES "}, {\"path\": "
        "\"c.jsonl\", \"type\": \"alpaca\", \"format\": \"USER: "
        "{instruction}\\n{input}\\nASSISTANT:\", \"no_input_format\": \"USER: "
        "{instruction}\\nASSISTANT:\", " OF_ALPACA "}], \"eval_data\": \"t.jsonl\", \"train_on\": "
        "\"all\", \"packing\": true, \"lr_scheduler_type\": \"cosine\"}, "
        "\"dataloader_drop_last\": true}",
        0);
    makes("base_model: m\nval_set_size: 0.1\ndatasets: [{path: a.jsonl, type: chat_template}]\n"
          "train_on_inputs: false\n",
          "{\"sifr\": {\"model\": \"m\", \"dataset\": [{\"path\": \"a.jsonl\", \"type\": "
          "\"messages\", " OF_MESSAGES
          "}], \"validation_split\": 0.1, \"lr_scheduler_type\": \"cosine\"}}",
          0);
    says("base_model: m\ndatasets: [{path: org/name, type: alpaca}]\n",
         "not taken over: a name on a hub: download it, and write the path of its files there, or "
         "give them to --data\n");
    says("base_model: m\ndatasets: [{path: a.jsonl, type: {system_prompt: x}}]\n",
         "not taken over: a type of its own is read with field_instruction, field_output and "
         "format\n");
    makes(
        "base_model: m\ndatasets: [{path: a.jsonl, type: chat_template, field_messages: talk}, "
        "{path: "
        "b.jsonl, type: completion, field: body}]\n",
        "{\"sifr\": {\"model\": \"m\", \"lr_scheduler_type\": \"cosine\", \"dataset\": [{\"path\": "
        "\"a.jsonl\", \"type\": \"messages\", \"fields\": {\"messages\": "
        "\"talk\"}, " OF_MESSAGES_NOR(
            "\"messages\"") "}, {\"path\": "
                            "\"b.jsonl\", \"type\": \"text\", \"fields\": {\"text\": \"body\"}, "
                            "\"ignore_fields\": "
                            "[\"label\", \"kto_tag\", \"text\"]}]}}",
        0);
    says("base_model: m\nval_set_size: 20\n", "val_set_size = 20: sifr.validation_split\n");
    /* Text has no places for rows, and is held out as a file. */
    makes("base_model: m\ndatasets: [{path: a.txt, type: completion}]\nsample_packing: true\n"
          "val_set_size: 0.1\n",
          "{\"sifr\": {\"model\": \"m\", \"data\": [\"a.txt\"], \"lr_scheduler_type\": "
          "\"cosine\"}}",
          1);
    makes("output_dir: o\ndataset_name: chats.parquet\nassistant_only_loss: true\n"
          "completion_only_loss: null\n",
          "{\"sifr\": {\"output\": \"o\", \"data\": [\"chats.parquet\"], " OF_TRL ", \"train_on\": "
          "\"assistant_only\", \"lr_scheduler_type\": \"linear\"}}",
          0);
    makes("output_dir: o\nstage: sft\nfinetuning_type: full\nval_size: 0.2\nmax_samples: 500\n",
          "{\"sifr\": {\"output\": \"o\", \"validation_split\": 0.2, \"max_samples\": 500, "
          "\"lr_scheduler_type\": \"linear\"}}",
          0);
    makes("output_dir: o\ndataset_name: a.jsonl\ndataset_text_field: body\n",
          "{\"sifr\": {\"output\": \"o\", \"data\": [\"a.jsonl\"], \"data_fields\": "
          "[\"text=body\"], \"train_on\": \"completion\", " OF_TRL ", "
          "\"lr_scheduler_type\": \"linear\"}}",
          0);
    makes("output_dir: o\ntrain_file: a.txt\ndataset_text_field: body\n",
          "{\"sifr\": {\"output\": \"o\", \"data\": \"a.txt\", \"train_on\": \"completion\", "
          "\"lr_scheduler_type\": \"linear\"}}",
          0);
    makes("output_dir: o\ndataset: identity,alpaca\nmask_history: true\ntrain_on_prompt: false\n"
          "stage: sft\nfinetuning_type: full\n",
          "{\"sifr\": {\"output\": \"o\", \"train_on\": \"last\", \"lr_scheduler_type\": "
          "\"linear\"}}",
          1);
}

static void accelerate(void **state) {
    (void)state;
    makes("distributed_type: DEEPSPEED\nmixed_precision: fp16\nnum_processes: 1\ndeepspeed_config: "
          "{zero_stage: 3, offload_optimizer_device: nvme, offload_optimizer_nvme_path: /n, "
          "offload_param_device: none, gradient_accumulation_steps: auto}\n",
          "{\"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": \"nvme\", "
          "\"nvme_path\": \"/n\"}}, \"gradient_accumulation_steps\": \"auto\", \"fp16\": "
          "{\"enabled\": true}}",
          0);
    makes("distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: 2}\n",
          "{\"zero_optimization\": {\"stage\": 2}}", 0);
    makes("distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: HYBRID_SHARD}\n", "{}", 1);
    refuses("mixed_precision: fp8\n",
            "a.yaml: mixed_precision is \"fp8\": the types are bf16, fp16 "
            "and fp32; take the key out, change it, or pass --allow KEY");
}

static void what_is_none_of_them(void **state) {
    (void)state;
    static const char zip[] = "PK\x03\x04....";
    refuses("a: 1\n", "a.yaml: is no config of axolotl, of accelerate or of the Hugging Face "
                      "Trainer: none of their keys is there");
    refuses("",
            "a.yaml: is no config of axolotl, of accelerate or of the Hugging Face Trainer: none "
            "of their keys is there");
    refuses("{\"zero_optimization\": {\"stage\": 1}}",
            "a.yaml: is a DeepSpeed config; sifr train --config takes it as it is");
    refuses("a: [",
            "a.yaml: not valid YAML at line 2, column 1: did not find expected node content");
    import_case c = import(zip);
    assert_int_equal(c.status, SIFR_USAGE);
    assert_non_null(strstr(c.error.message, "a.yaml: is a pickle, which sifr does not run; make it "
                                            "JSON where transformers is installed: python -c "));
    c = import("\x80\x04}");
    assert_non_null(strstr(c.error.message, "is a pickle"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_of_the_trainer),
        cmocka_unit_test(with_a_deepspeed_config),
        cmocka_unit_test(axolotl),
        cmocka_unit_test(texts_of_axolotl),
        cmocka_unit_test(no_form_of_axolotl),
        cmocka_unit_test(rows_to_fine_tune_on),
        cmocka_unit_test(optimizers),
        cmocka_unit_test(preferences),
        cmocka_unit_test(adapters),
        cmocka_unit_test(accelerate),
        cmocka_unit_test(what_is_none_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
