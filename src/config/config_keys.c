/* Every key of DeepSpeed's config (deepspeed/runtime/config.py, runtime/constants.py,
 * runtime/zero/config.py and the config classes of its features, 0.19), the sections that its
 * users spell their own way, and the "sifr" section. Defaults are those of DeepSpeed's source
 * where docs and source differ. Switching a feature on is an edit of its row. */
#include "config/config_keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/config.h"

#define SECTION CONFIG_SECTION
#define BOOL CONFIG_BOOL
#define INT CONFIG_INT
#define BYTES CONFIG_BYTES
#define NUMBER CONFIG_NUMBER
#define TEXT CONFIG_TEXT
#define CHOICE CONFIG_CHOICE
#define TEXTS CONFIG_TEXTS
#define NUMBERS CONFIG_NUMBERS
#define ANY CONFIG_ANY
#define BUILT CONFIG_BUILT
#define NONE CONFIG_NO_EFFECT
#define LATER CONFIG_LATER
#define REMOVED CONFIG_REMOVED
#define ALIAS CONFIG_ALIAS
#define FIELD(name)                                                                                \
    .member = #name, .field = offsetof(sifr_config, name) + 1,                                     \
    .size = sizeof(((sifr_config *)0)->name),                                                      \
    .is_unsigned = _Generic(((sifr_config *)0)->name, uint64_t                                     \
                            : true, default                                                        \
                            : false)
/* `sifr plan --fit` may choose it. */
#define FIT(name_, says_) .fit = name_, .says = says_
/* Where --help has its flag; else under what to train. */
#define IN(group_) .group = CONFIG_FLAGS_##group_
#define KEY(path_, type_, status_, fallback_, unit_, doc_, ...)                                    \
    {                                                                                              \
        .path = path_, .type = type_, .status = status_, .fallback = fallback_, .unit = unit_,     \
        .doc = doc_, __VA_ARGS__                                                                   \
    }
#define ZERO .gate = "zero_optimization.stage"
#define STAGE_3 .gate = "zero_optimization.stage", .opens = "3"
#define NVME .gate = "zero_optimization.offload_optimizer.device", .opens = "\"nvme\""
#define PARAM_NVME .gate = "zero_optimization.offload_param.device", .opens = "\"nvme\""
/* Of state in host memory, too, where that is not the device's. */
#define AWAY NVME, .host = true
#define PARAM_AWAY PARAM_NVME, .host = true
#define STATE_AWAY AWAY, .also = {"zero_optimization.offload_param.device"}
#define ANY_NVME                                                                                   \
    NVME, .also = {"zero_optimization.offload_param.device", "sifr.offload_activations",           \
                   "sifr.offload_gradients"}
#define MOMENTUM_1BIT "OneBitAdam|ZeroOneAdam|OneBitLamb"
#define ADAMS "Adam|AdamW|OneBitAdam|ZeroOneAdam|MuAdam|MuAdamW"
#define ADAMS_8BIT "Adam8bit|AdamW8bit"
/* In the order of sifr_optimizer_type. */
#define OPTIMIZERS                                                                                 \
    "AdamW|Adam|SGD|Adagrad|Lion|AdamWScheduleFree|" ADAMS_8BIT "|Lamb|Muon|Adafactor"
#define OPTIMIZERS_LATER "OneBitAdam|ZeroOneAdam|OneBitLamb|MuAdam|MuAdamW|MuSGD"
#define FREE "AdamWScheduleFree"
#define BETAS "0..<1"
#define DIGITS(number) DIGITS_OF(number)
#define DIGITS_OF(number) #number
/* Gradients are made in fp32, which ends at 2^128. */
#define SCALE_POWER "126"
#define WARMUPS "WarmupLR|WarmupDecayLR"
/* Names of transformers' get_scheduler; the last two are refused. */
#define TRAINER_LATER "reduce_lr_on_plateau|greedy"
#define TRAINER_KINDS                                                                              \
    "linear|cosine|cosine_with_restarts|polynomial|constant|constant_with_warmup|inverse_sqrt|"    \
    "cosine_with_min_lr|cosine_warmup_with_min_lr|warmup_stable_decay|" TRAINER_LATER
#define TRAINER_WARMUPS                                                                            \
    "linear|cosine|cosine_with_restarts|polynomial|constant_with_warmup|inverse_sqrt|"             \
    "cosine_with_min_lr|cosine_warmup_with_min_lr|warmup_stable_decay"
#define MIN_LRS "cosine_with_min_lr|cosine_warmup_with_min_lr"

/* clang-format off */
static const config_key config_keys[] = {
KEY("train_batch_size", INT, BUILT, NULL, "sequences", "The global batch of one optimizer step: train_micro_batch_size_per_gpu x gradient_accumulation_steps x ranks.", .range = "> 0", FIELD(train_batch_size)),
KEY("train_micro_batch_size_per_gpu", INT, BUILT, NULL, "sequences", "Sequences that one rank processes at a time.", .range = "> 0", FIT("micro_batch_size", "micro batch %s"), FIELD(step.micro_batch_size)),
KEY("gradient_accumulation_steps", INT, BUILT, NULL, "", "Micro batches whose gradients each rank accumulates before an optimizer step.", .range = "> 0", FIT("gradient_accumulation_steps", "accumulation %s"), FIELD(step.gradient_accumulation_steps)),
KEY("managed_gradient_accumulation", BOOL, LATER, "true", "", "false lets the caller decide when to step, which the program cannot."),
KEY("gradient_clipping", NUMBER, BUILT, "1.0", "L2 norm", "Gradients are divided by max(1, (norm + 1e-6) / this); 0 turns it off. 1.0 is the Hugging Face Trainer's default; DeepSpeed's is 0.", .range = ">= 0", FIELD(step.gradient_clipping)),
KEY("communication_data_type", CHOICE, BUILT, "\"fp32\"", "", "The type in which gradients are sent to be summed. A 16-bit type halves the traffic, rounds each rank's part, and makes results reproducible for a fixed number of ranks only. DeepSpeed's default is the model's type; here it is fp32.", .choices = "fp32|bf16|fp16", FIELD(step.communication_data_type)),
KEY("seq_parallel_communication_data_type", CHOICE, NONE, "\"fp32\"", "", "there is no sequence parallelism here.", .choices = "fp32|bf16|fp16"),
KEY("prescale_gradients", BOOL, NONE, "false", "", "gradients are summed in fp32 and divided once, by the global count of tokens."),
KEY("gradient_predivide_factor", NUMBER, NONE, "1.0", "", "gradients are summed in fp32 and divided once, by the global count of tokens.", .range = "> 0"),
KEY("gradient_allreduce_op", CHOICE, BUILT, "\"mean\"", "", "Gradients are those of the mean loss over the global batch's tokens.", .choices = "mean|sum", .later = "sum"),
KEY("sparse_gradients", BOOL, REMOVED, "false", "", "DeepSpeed took it out; gradients of embeddings are dense here."),
KEY("disable_allgather", BOOL, NONE, "false", "", "the plan chooses how parameters are gathered."),
KEY("dump_state", BOOL, NONE, "false", "", "--dry-run says what each key does, and the effective config is written into the output."),
KEY("graph_harvesting", BOOL, REMOVED, "false", "", "DeepSpeed took it out; a step is a fixed schedule here."),
KEY("disable_python_gc", BOOL, NONE, "false", "", "there is no Python here."),
KEY("dataloader_drop_last", BOOL, BUILT, "false", "", "Leaves rows that do not fill a micro batch out of their epoch. Otherwise the last batch of an epoch is a step with the rows that are left, as in the Hugging Face Trainer. Text and token stores have batches that run on into the next epoch, and the run's last one is dropped if it is not full.", FIELD(drop_last)),
KEY("vocabulary_size", INT, NONE, NULL, "tokens", "the vocabulary is that of the model's config.json.", .range = "> 0"),
KEY("use_data_before_expert_parallelism", BOOL, NONE, "false", "", "there is no expert parallelism here."),
KEY("sequence_parallel_size", INT, LATER, "1", "ranks", "Ranks that share one sequence.", .range = ">= 1", .ungated = true),
KEY("steps_per_print", INT, BUILT, NULL, "steps", "Prints a progress line every N steps.", .range = "> 0", FIELD(steps_per_print)),
KEY("log_level", TEXT, NONE, NULL, "", "what is said does not depend on a level."),
KEY("wall_clock_breakdown", BOOL, BUILT, "false", "", "Prints how long each class of instructions took, beside the prediction; with several ranks the minimum, median and maximum, and the slowest rank.", FIELD(wall_clock_breakdown)),
KEY("memory_breakdown", BOOL, BUILT, "false", "", "Prints the ranks' memory before the first step, after it and at the end: the plan by class, and what was measured.", FIELD(memory_breakdown)),
KEY("zero_allow_untested_optimizer", BOOL, NONE, "false", "", "every optimizer that is built works with every ZeRO stage that is built."),
KEY("zero_force_ds_cpu_optimizer", BOOL, NONE, "true", "", "there is one optimizer for each device."),
KEY("allgather_size", INT, ALIAS, NULL, "elements", "Old spelling.", .alias = "zero_optimization.allgather_bucket_size"),

KEY("optimizer", SECTION, BUILT, NULL, "", "The optimizer; without this section, AdamW with the Hugging Face Trainer's values."),
KEY("optimizer.type", CHOICE, BUILT, "\"AdamW\"", "", "AdamW; Adam with the meaning that it has in DeepSpeed: also AdamW, unless adam_w_mode is false; SGD and Adagrad as PyTorch has them; Lion; Lamb and Muon as DeepSpeed has them; AdamWScheduleFree of the package schedulefree; Adafactor of transformers; Adam8bit and AdamW8bit of bitsandbytes. docs/optimizers.md has their formulas and parameters.", .choices = OPTIMIZERS "|" OPTIMIZERS_LATER, .later = OPTIMIZERS_LATER, .removed = MOMENTUM_1BIT, FIELD(step.optimizer.type)),
KEY("optimizer.legacy_fusion", BOOL, NONE, "false", "", "the optimizer is one fused pass."),
KEY("optimizer.params", SECTION, BUILT, NULL, "", "Parameters of the optimizer."),
KEY("optimizer.params.lr", NUMBER, BUILT, "0.001", "", "Learning rate; flag --learning-rate. \"auto\", or no optimizer section: 5e-5, as in the Hugging Face Trainer. Not given: of Adagrad 0.01, of AdamWScheduleFree 0.0025, of Muon 0.02, as in their libraries.", .range = ">= 0", FIELD(lr)),
KEY("optimizer.params.betas", NUMBERS, BUILT, "[0.9, 0.999]", "", "Decay rates of the first and second moment; of Lion [0.9, 0.99], of Muon's Adam [0.9, 0.95] unless given.", .range = BETAS, .only = ADAMS "|Lamb|OneBitLamb|Muon|Lion|" FREE "|" ADAMS_8BIT),
KEY("optimizer.params.eps", NUMBER, BUILT, "1e-8", "", "Added to the square root of the second moment, after bias correction; of Adagrad and Muon's Adam 1e-10 unless given. Adafactor adds it to squares of gradients, 1e-30 unless given; there it may be a list of two numbers as in transformers, the second of which is least_scale.", .range = ">= 0", .only = ADAMS "|Lamb|OneBitLamb|Muon|Adagrad|Adafactor|" FREE "|" ADAMS_8BIT, FIELD(step.optimizer.eps)),
KEY("optimizer.params.weight_decay", NUMBER, BUILT, "0.0", "", "Weight decay of every trained parameter, including norms and biases, as in DeepSpeed; sifr.no_decay leaves those out, as the Hugging Face Trainer does. Of AdamW8bit 0.01 unless given, as in bitsandbytes.", .range = ">= 0", FIELD(step.optimizer.weight_decay)),
KEY("optimizer.params.bias_correction", BOOL, BUILT, "true", "", "Divides the moments by 1 - beta^step.", .only = ADAMS "|Lamb", FIELD(step.optimizer.bias_correction)),
KEY("optimizer.params.adam_w_mode", BOOL, BUILT, "true", "", "With type Adam, and in Muon's Adam: true is decoupled weight decay (AdamW), false adds it to the gradient (L2). AdamW ignores it.", .only = ADAMS "|Muon", FIELD(step.optimizer.decoupled)),
KEY("optimizer.params.torch_adam", BOOL, NONE, "false", "", "there is one AdamW, and no torch.", .only = ADAMS),
KEY("optimizer.params.fp32_optimizer_states", BOOL, LATER, "true", "", "false keeps the moments in the parameters' type.", .only = ADAMS "|Lion|Adagrad"),
KEY("optimizer.params.amsgrad", BOOL, BUILT, "false", "", "The AMSGrad variant: the largest second moment so far in place of the second moment. Lamb and Adagrad take false alone.", .only = "Adam|AdamW|Lamb|Adagrad", FIELD(step.optimizer.amsgrad)),
KEY("optimizer.params.foreach", BOOL, NONE, NULL, "", "there is no torch.", .only = ADAMS "|SGD|Adagrad|" FREE),
KEY("optimizer.params.fused", BOOL, NONE, NULL, "", "there is no torch.", .only = ADAMS "|SGD|Adagrad"),
KEY("optimizer.params.set_grad_none", BOOL, NONE, "true", "", "gradient buffers are planned, not dropped.", .only = ADAMS "|Lion"),
KEY("optimizer.params.max_grad_norm", NUMBER, REMOVED, NULL, "", "DeepSpeed raises on it; use gradient_clipping.", .neutral = "0"),
KEY("optimizer.params.momentum", NUMBER, BUILT, "0.0", "", "SGD's momentum; 0: none, and no state. Of Muon 0.95 unless given.", .range = "0..<1", .only = "SGD|Muon|MuSGD", FIELD(step.optimizer.momentum)),
KEY("optimizer.params.dampening", NUMBER, BUILT, "0.0", "", "A gradient enters SGD's momentum with 1 minus this, but for the first.", .range = "0..1", .only = "SGD", FIELD(step.optimizer.dampening)),
KEY("optimizer.params.nesterov", BOOL, BUILT, "false", "", "SGD with Nesterov's momentum; it takes a momentum, and no dampening.", .only = "SGD", FIELD(step.optimizer.nesterov)),
KEY("optimizer.params.maximize", BOOL, LATER, "false", "", "Steps uphill.", .only = "SGD|Adagrad|Adam|AdamW"),
KEY("optimizer.params.lr_decay", NUMBER, BUILT, "0.0", "", "Adagrad divides the learning rate of step t, counted from 0, by 1 + t times this.", .range = ">= 0", .only = "Adagrad", FIELD(step.optimizer.lr_decay)),
KEY("optimizer.params.initial_accumulator_value", NUMBER, LATER, "0.0", "", "What Adagrad's sums of squares begin with.", .only = "Adagrad"),
KEY("optimizer.params.warmup_steps", INT, BUILT, "0", "steps", "AdamWScheduleFree: the rate grows linearly over this many steps.", .range = ">= 0", .only = FREE, FIELD(step.optimizer.warmup_steps)),
KEY("optimizer.params.r", NUMBER, BUILT, "0.0", "", "AdamWScheduleFree: power of the step's number in its weight in the average.", .range = ">= 0", .only = FREE, FIELD(step.optimizer.r)),
KEY("optimizer.params.weight_lr_power", NUMBER, BUILT, "2.0", "", "AdamWScheduleFree: power of the largest learning rate so far in that weight.", .range = ">= 0", .only = FREE, FIELD(step.optimizer.weight_lr_power)),
KEY("optimizer.params.scale_parameter", BOOL, BUILT, "true", "", "Adafactor: the rate of a weight is scaled by the RMS of its elements. The Trainer's optim adafactor sets false.", .only = "Adafactor", FIELD(step.optimizer.scale_parameter)),
KEY("optimizer.params.least_scale", NUMBER, BUILT, "0.001", "", "Adafactor: scale_parameter takes at least this RMS.", .range = ">= 0", .only = "Adafactor", FIELD(step.optimizer.least_scale)),
KEY("optimizer.params.relative_step", BOOL, BUILT, "true", "", "Adafactor: the rate of step t is 1 / sqrt(t), at most 0.01, in place of lr and a scheduler. The Trainer's optim adafactor sets false.", .only = "Adafactor", FIELD(schedule.relative_step)),
KEY("optimizer.params.warmup_init", BOOL, BUILT, "false", "", "Adafactor with relative_step: the rate of step t is also at most t times 1e-6, in place of 0.01.", .only = "Adafactor", FIELD(schedule.warmup_init)),
KEY("optimizer.params.clip_threshold", NUMBER, BUILT, "1.0", "", "Adafactor: an update with a larger RMS is scaled down to it, before the rate.", .range = "> 0", .only = "Adafactor", FIELD(step.optimizer.clip_threshold)),
KEY("optimizer.params.decay_rate", NUMBER, BUILT, "-0.8", "", "Adafactor: in step t the averages take the new squares with weight t^decay_rate.", .range = "-10..0", .only = "Adafactor", FIELD(step.optimizer.decay_rate)),
KEY("optimizer.params.beta1", NUMBER, BUILT, NULL, "", "Adafactor: decay rate of a momentum, which is kept only where this is given.", .range = "0..<1", .only = "Adafactor"),
KEY("optimizer.params.min_8bit_size", INT, BUILT, "4096", "", "Adam8bit, AdamW8bit: weights of fewer elements keep their moments in fp32.", .range = ">= 0", .only = ADAMS_8BIT, FIELD(step.optimizer.min_8bit_size)),
KEY("optimizer.params.muon_lr", NUMBER, BUILT, NULL, "", "Muon: learning rate of the matrices; default: lr. It follows the schedule as lr does.", .range = "> 0", .only = "Muon", FIELD(muon_lr)),
KEY("optimizer.params.adam_lr", NUMBER, BUILT, NULL, "", "Muon: learning rate of what is left to Adam; default: lr, or 3e-4 if that is not given either.", .range = "> 0", .only = "Muon", FIELD(adam_lr)),
KEY("optimizer.params.ns_method", CHOICE, BUILT, "\"gram\"", "", "Muon: the Newton-Schulz iteration on the Gram matrix, which takes less time unless the matrix is square, or on the matrix itself.", .choices = "gram|standard", .only = "Muon", FIELD(step.optimizer.ns_method)),
KEY("optimizer.params.freeze_step", INT, LATER, "100000", "steps", "Steps of plain Adam before compression. DeepSpeed took 1-bit Adam, 0/1 Adam and 1-bit LAMB out in 0.19.8.", .only = MOMENTUM_1BIT),
KEY("optimizer.params.cuda_aware", BOOL, LATER, "false", "", "MPI handles device memory.", .only = MOMENTUM_1BIT),
KEY("optimizer.params.comm_backend_name", TEXT, LATER, "\"nccl\"", "", "Transport of the compressed momentum.", .only = MOMENTUM_1BIT),
KEY("optimizer.params.var_freeze_step", INT, LATER, "100000", "steps", "0/1 Adam: when the second moment stops.", .only = "ZeroOneAdam"),
KEY("optimizer.params.var_update_scaler", INT, LATER, "16", "steps", "0/1 Adam: interval of second moment updates.", .only = "ZeroOneAdam"),
KEY("optimizer.params.local_step_scaler", INT, LATER, "32678", "steps", "0/1 Adam: interval of local steps.", .only = "ZeroOneAdam"),
KEY("optimizer.params.local_step_clipper", INT, LATER, "16", "steps", "0/1 Adam: most local steps.", .only = "ZeroOneAdam"),
KEY("optimizer.params.max_coeff", NUMBER, BUILT, "10.0", "", "LAMB: upper bound of a weight's trust ratio.", .range = ">= 0", .only = "Lamb|OneBitLamb", FIELD(step.optimizer.max_coeff)),
KEY("optimizer.params.min_coeff", NUMBER, BUILT, "0.01", "", "LAMB: lower bound of a weight's trust ratio.", .range = ">= 0", .only = "Lamb|OneBitLamb", FIELD(step.optimizer.min_coeff)),
KEY("optimizer.params.eps_inside_sqrt", BOOL, LATER, "false", "", "true adds eps to the second moment instead of its square root.", .only = "Lamb"),
KEY("optimizer.params.coeff_beta", NUMBER, LATER, "0.9", "", "1-bit LAMB: averaging of the trust ratio.", .only = "OneBitLamb"),
KEY("optimizer.params.factor_max", NUMBER, LATER, "4.0", "", "1-bit LAMB: upper bound of the factor.", .only = "OneBitLamb"),
KEY("optimizer.params.factor_min", NUMBER, LATER, "0.5", "", "1-bit LAMB: lower bound of the factor.", .only = "OneBitLamb"),
KEY("optimizer.params.factor_threshold", NUMBER, LATER, "0.1", "", "1-bit LAMB: most that the factor changes in a step.", .only = "OneBitLamb"),

KEY("scheduler", SECTION, BUILT, NULL, "", "The learning-rate schedule, which advances once per optimizer step; without this section the rate is constant."),
KEY("scheduler.type", CHOICE, BUILT, NULL, "", "The kind of schedule: DeepSpeed's, or one of transformers' by the Trainer's name; scheduler.params lists the parameters of each. reduce_lr_on_plateau and greedy change the rate by what evaluations give, and no other part of a step depends on those here.", .choices = "WarmupLR|WarmupDecayLR|WarmupCosineLR|OneCycle|LRRangeTest|" TRAINER_KINDS, .later = TRAINER_LATER),
KEY("scheduler.params", SECTION, BUILT, NULL, "", "Parameters of the schedule."),
KEY("scheduler.params.warmup_min_lr", NUMBER, BUILT, "0.0", "", "Rate at the start.", .range = ">= 0", .only = WARMUPS, FIELD(schedule.warmup_min_lr)),
KEY("scheduler.params.warmup_max_lr", NUMBER, BUILT, NULL, "", "Rate after the warm-up. Default: the optimizer's (WarmupLR), 0.001 (WarmupDecayLR); \"auto\": the optimizer's.", .range = ">= 0", .only = WARMUPS, FIELD(schedule.warmup_max_lr)),
KEY("scheduler.params.warmup_num_steps", INT, BUILT, "1000", "steps", "Length of the warm-up, at least 2. \"auto\": what sifr.warmup_steps or warmup_ratio say, else none, which counts as 2.", .range = ">= 0", .only = WARMUPS "|WarmupCosineLR", FIELD(schedule.warmup_num_steps)),
KEY("scheduler.params.warmup_type", CHOICE, BUILT, "\"log\"", "", "log: ln(t + 1) / ln(warmup_num_steps); linear: t / warmup_num_steps, t counted from 0. warmup_stable_decay has linear (its default), cosine and 1-sqrt, the others log and linear.", .choices = "log|linear|cosine|1-sqrt", .only = WARMUPS "|WarmupCosineLR|warmup_stable_decay", FIELD(schedule.warmup_type)),
KEY("scheduler.params.total_num_steps", INT, BUILT, NULL, "steps", "Where the decay ends; required. \"auto\": the steps of the run.", .range = "> 0", .only = "WarmupDecayLR|WarmupCosineLR", FIELD(schedule.total_num_steps)),
KEY("scheduler.params.warmup_min_ratio", NUMBER, BUILT, "0.0", "", "Start of the warm-up, as a share of the optimizer's rate.", .range = "0..1", .only = "WarmupCosineLR", FIELD(schedule.warmup_min_ratio)),
KEY("scheduler.params.cos_min_ratio", NUMBER, BUILT, "0.0001", "", "End of the decay, as a share of the optimizer's rate.", .range = "0..1", .only = "WarmupCosineLR", FIELD(schedule.cos_min_ratio)),
KEY("scheduler.params.cycle_min_lr", NUMBER, BUILT, NULL, "", "Rate at the start and end of the cycle; required.", .range = ">= 0", .only = "OneCycle", FIELD(schedule.cycle_min_lr)),
KEY("scheduler.params.cycle_max_lr", NUMBER, BUILT, NULL, "", "Rate in the middle of the cycle; required.", .range = ">= 0", .only = "OneCycle", FIELD(schedule.cycle_max_lr)),
KEY("scheduler.params.decay_lr_rate", NUMBER, BUILT, "0.0", "", "After the cycle the rate is cycle_min_lr / (1 + this x steps / decay_step_size).", .range = ">= 0", .only = "OneCycle", FIELD(schedule.decay_lr_rate)),
KEY("scheduler.params.cycle_first_step_size", INT, BUILT, "2000", "steps", "Length of the rising half.", .range = "> 0", .only = "OneCycle", FIELD(schedule.first_step_size)),
KEY("scheduler.params.cycle_second_step_size", INT, BUILT, NULL, "steps", "Length of the falling half; default: that of the rising half.", .range = "> 0", .only = "OneCycle", FIELD(schedule.second_step_size)),
KEY("scheduler.params.cycle_first_stair_count", INT, BUILT, "0", "", "Stairs in the rising half; 0: none.", .range = ">= 0", .only = "OneCycle", FIELD(schedule.first_stair_count)),
KEY("scheduler.params.cycle_second_stair_count", INT, BUILT, NULL, "", "Stairs in the falling half; default: those of the rising half.", .range = ">= 0", .only = "OneCycle", FIELD(schedule.second_stair_count)),
KEY("scheduler.params.decay_step_size", INT, BUILT, "0", "steps", "Interval of the decay after the cycle; 0: no decay.", .range = ">= 0", .only = "OneCycle", FIELD(schedule.decay_step_size)),
KEY("scheduler.params.cycle_momentum", BOOL, BUILT, "true", "", "Moves the first beta of each step against the rate, and sets the second to 0.99; bias corrections are 1 - beta^t with the betas of the step, as in torch. Older versions of sifr left the betas as they were.", .only = "OneCycle", FIELD(schedule.cycle_momentum)),
KEY("scheduler.params.cycle_min_mom", NUMBER, BUILT, "0.8", "", "First beta in the middle of the cycle.", .range = "0..<1", .only = "OneCycle", FIELD(schedule.cycle_min_mom)),
KEY("scheduler.params.cycle_max_mom", NUMBER, BUILT, "0.9", "", "First beta at the start and end of the cycle.", .range = "0..<1", .only = "OneCycle", FIELD(schedule.cycle_max_mom)),
KEY("scheduler.params.decay_mom_rate", NUMBER, BUILT, "0.0", "", "After the cycle the first beta is cycle_max_mom x (1 + this x steps / decay_step_size). It must stay below 1 to the end of the run.", .range = ">= 0", .only = "OneCycle", FIELD(schedule.decay_mom_rate)),
KEY("scheduler.params.lr_range_test_min_lr", NUMBER, BUILT, "0.001", "", "Rate at the start.", .range = ">= 0", .only = "LRRangeTest", FIELD(schedule.range_min_lr)),
KEY("scheduler.params.lr_range_test_step_size", INT, BUILT, "2000", "steps", "Steps in which the rate grows by lr_range_test_step_rate of its start.", .range = "> 0", .only = "LRRangeTest", FIELD(schedule.range_step_size)),
KEY("scheduler.params.lr_range_test_step_rate", NUMBER, BUILT, "1.0", "", "Growth of the rate, as a share of its start.", .range = ">= 0", .only = "LRRangeTest", FIELD(schedule.range_step_rate)),
KEY("scheduler.params.lr_range_test_staircase", BOOL, BUILT, "false", "", "Grows at the end of each interval only.", .only = "LRRangeTest", FIELD(schedule.range_staircase)),
KEY("scheduler.params.num_warmup_steps", NUMBER, BUILT, NULL, "steps", "Steps in which the rate grows in a line from 0; below 1, a share of the run's steps, rounded up.", .range = ">= 0", .only = TRAINER_WARMUPS),
KEY("scheduler.params.num_training_steps", INT, BUILT, NULL, "steps", "Where the schedule ends; default: the steps of the run.", .range = "> 0", .only = TRAINER_WARMUPS "|constant", FIELD(schedule.total_num_steps)),
KEY("scheduler.params.num_cycles", NUMBER, BUILT, NULL, "waves", "Waves of the cosine; default: 0.5, down once (cosine_with_restarts: 1, each begins anew at the top).", .range = "0..1000000", .only = "cosine|cosine_with_restarts|warmup_stable_decay|" MIN_LRS, FIELD(schedule.num_cycles)),
KEY("scheduler.params.lr_end", NUMBER, BUILT, "1e-7", "", "Rate at the end of the run, below the optimizer's.", .range = ">= 0", .only = "polynomial", FIELD(schedule.lr_end)),
KEY("scheduler.params.power", NUMBER, BUILT, "1.0", "", "Exponent of the share of the run that is left.", .range = ">= 0", .only = "polynomial", FIELD(schedule.power)),
KEY("scheduler.params.timescale", INT, BUILT, NULL, "steps", "The rate falls as 1 / sqrt(1 + steps since the warm-up / this); default: the length of the warm-up, or 10000 without one.", .range = "> 0", .only = "inverse_sqrt", FIELD(schedule.timescale)),
KEY("scheduler.params.min_lr", NUMBER, BUILT, NULL, "", "Rate at the end of the run; this or min_lr_rate is required.", .range = ">= 0", .only = MIN_LRS),
KEY("scheduler.params.min_lr_rate", NUMBER, BUILT, NULL, "", "The same as a share of the optimizer's rate.", .range = "0..1", .only = MIN_LRS, FIELD(schedule.min_lr_rate)),
KEY("scheduler.params.warmup_lr_rate", NUMBER, BUILT, NULL, "", "Start of the warm-up, as a share of the optimizer's rate; default: 1 / the warm-up's steps.", .range = "0..1", .only = "cosine_warmup_with_min_lr", FIELD(schedule.warmup_lr_rate)),
KEY("scheduler.params.num_stable_steps", INT, BUILT, NULL, "steps", "Steps at the optimizer's rate; default: those that the warm-up and the decay leave.", .range = ">= 0", .only = "warmup_stable_decay"),
KEY("scheduler.params.num_decay_steps", INT, BUILT, NULL, "steps", "Steps of the decay; required.", .range = ">= 0", .only = "warmup_stable_decay", FIELD(schedule.num_decay_steps)),
KEY("scheduler.params.decay_type", CHOICE, BUILT, "\"cosine\"", "", "Form of the decay.", .choices = "linear|cosine|1-sqrt", .only = "warmup_stable_decay"),
KEY("scheduler.params.min_lr_ratio", NUMBER, BUILT, "0.0", "", "Rate at both ends, as a share of the optimizer's.", .range = "0..1", .only = "warmup_stable_decay", FIELD(schedule.min_lr_ratio)),
KEY("scheduler.params.last_batch_iteration", INT, NONE, "-1", "steps", "a resumed run takes it from its checkpoint.", .range = ">= -1"),

KEY("bf16", SECTION, BUILT, NULL, "", "bf16 parameters and arithmetic, with fp32 master weights and optimizer state."),
KEY("bf16.enabled", BOOL, BUILT, "false", "", "Trains in bf16; false is fp32. \"auto\": false, unless --bf16.", .flag = "bf16", IN(SPEED)),
KEY("bf16.immediate_grad_update", BOOL, NONE, "false", "", "the schedule adds gradients up where they are made."),
KEY("bf16.check_grad_overflow", BOOL, NONE, "true", "", "non-finite gradients never reach the weights, in any precision; the step is skipped, and said."),
KEY("bf16.bf16_master_weights_and_grads", BOOL, BUILT, "false", "", "No fp32 master weights: the bf16 parameters themselves are updated, with stochastic rounding, and sums of gradients are kept in bf16 too. DeepSpeed requires stages 1 to 3, and CPU offload unless bf16_optimizer_states is true; sifr requires neither.", FIELD(step.bf16_master_weights)),
KEY("bf16.bf16_optimizer_states", BOOL, BUILT, "false", "", "Adam's moments in bf16, with stochastic rounding. DeepSpeed requires bf16_master_weights_and_grads with it; here it also works with fp32 master weights.", FIELD(step.bf16_optimizer_states)),
KEY("bfloat16", SECTION, ALIAS, NULL, "", "Old spelling.", .alias = "bf16"),
KEY("fp16", SECTION, BUILT, NULL, "", "fp16 parameters and activations, with fp32 master weights and optimizer state, and loss scaling; products are computed in fp32."),
KEY("fp16.enabled", BOOL, BUILT, "false", "", "Trains in fp16. \"auto\": false, unless --fp16.", .flag = "fp16", IN(SPEED)),
KEY("fp16.auto_cast", BOOL, LATER, "false", "", "Casts inputs to fp16."),
KEY("fp16.loss_scale", NUMBER, BUILT, "0", "", "Fixed loss scale; 0: dynamic.", .range = ">= 0", .most = "0x1p" SCALE_POWER, FIELD(step.fp16.loss_scale)),
KEY("fp16.initial_scale_power", INT, BUILT, "16", "", "The first dynamic scale is 2 to this power.", .range = ">= 0", .most = SCALE_POWER, FIELD(step.fp16.initial_scale_power)),
KEY("fp16.loss_scale_window", INT, BUILT, "1000", "steps", "Steps without overflow after which the scale doubles.", .range = "> 0", FIELD(step.fp16.loss_scale_window)),
KEY("fp16.hysteresis", INT, BUILT, "2", "", "The scale is halved by the overflow with this number and by each one after it; the count starts again when the scale doubles.", .range = "> 0", FIELD(step.fp16.hysteresis)),
KEY("fp16.consecutive_hysteresis", BOOL, BUILT, "false", "", "Restarts the count of overflows after each step without overflow.", FIELD(step.fp16.consecutive_hysteresis)),
KEY("fp16.min_loss_scale", NUMBER, BUILT, "1", "", "The least dynamic scale; an overflow at this scale ends the run.", .range = "> 0", FIELD(step.fp16.min_loss_scale)),
KEY("fp16.fp16_master_weights_and_grads", BOOL, LATER, "false", "", "Master weights and gradients in fp16."),
KEY("amp", SECTION, REMOVED, NULL, "", "NVIDIA Apex; DeepSpeed took it out; use bf16."),
KEY("amp.enabled", BOOL, REMOVED, "false", "", "NVIDIA Apex; DeepSpeed took it out; use bf16."),
KEY("amp.opt_level", TEXT, REMOVED, NULL, "", "Apex's level."),
KEY("torch_autocast", SECTION, LATER, NULL, "", "torch's automatic mixed precision."),
KEY("torch_autocast.enabled", BOOL, LATER, "false", "", "Switches it on; bf16.enabled and fp16.enabled are what is built."),
KEY("torch_autocast.dtype", CHOICE, LATER, "\"bfloat16\"", "", "The low precision.", .choices = "bfloat16|float16|bf16|fp16"),
KEY("torch_autocast.lower_precision_safe_modules", TEXTS, LATER, NULL, "", "Modules that run in low precision."),
KEY("data_types", SECTION, BUILT, NULL, "", "Types of stored values."),
KEY("data_types.grad_accum_dtype", CHOICE, BUILT, "\"fp32\"", "", "The type of gradient sums: fp32, or the model's type, which halves their memory and traffic and rounds every partial sum. DeepSpeed's default is the model's type; here it is fp32.", .choices = "fp32|bf16|fp16", FIELD(step.grad_accum_dtype)),
KEY("data_types.param_dtype", CHOICE, BUILT, NULL, "", "The type of the parameters; must agree with bf16.enabled and fp16.enabled.", .choices = "fp32|bf16|fp16"),
KEY("data_types.buffer_dtype", CHOICE, NONE, NULL, "", "the models here keep no buffers.", .choices = "fp32|bf16|fp16"),
KEY("data_types.keep_in_fp32_modules", TEXTS, LATER, NULL, "", "Buffers of modules that stay in fp32.", .neutral = "[]|[\"auto\"]"),

KEY("zero_optimization", SECTION, BUILT, NULL, "", "ZeRO: which state each rank keeps whole, and of which it keeps a slice.", .bool_means = "{\"stage\": 1}"),
KEY("zero_optimization.stage", INT, BUILT, "0", "", "0: all state whole; 1: a slice of the optimizer state; 2: also of the gradients; 3: also of the parameters.", .choices = "0|1|2|3", FIT("zero_stage", "ZeRO stage %s"), FIELD(step.zero.stage)),
KEY("zero_optimization.contiguous_gradients", BOOL, NONE, "true", "", "the gradients of a unit are made in one flat buffer."),
KEY("zero_optimization.reduce_scatter", BOOL, NONE, "true", "", "a gradient is summed, in fp32, where its slice is kept; an all-reduce would give the same."),
KEY("zero_optimization.reduce_bucket_size", INT, BUILT, NULL, "elements", "Gradients that are reduced while the backward pass goes on, unit by unit, at stages 2 and 3 one unit at a time; a larger unit is waited for at once. 0: every unit is waited for at once. No buffer has this size. Default: 5e8, or the largest unit if that is more.", .range = ">= 0", .unset = "-1", FIELD(step.zero.reduce_bucket_size)),
KEY("zero_optimization.use_multi_rank_bucket_allreduce", BOOL, NONE, "true", "", "every unit is summed slice by slice, each where it is kept."),
KEY("zero_optimization.allgather_partitions", BOOL, NONE, "true", "", "the slices of a unit are gathered by one call."),
KEY("zero_optimization.allgather_bucket_size", INT, BUILT, "5e8", "elements", "Parameters that are gathered at a time after the update, at least one unit. No buffer has this size.", .range = ">= 0", FIELD(step.zero.allgather_bucket_size)),
KEY("zero_optimization.overlap_comm", BOOL, BUILT, NULL, "", "Transfers overlap with computation; false: each one is waited for at once. Default: true at stage 3, else false.", FIT("overlap_comm", "overlap_comm %s"), FIELD(step.zero.overlap_comm)),
KEY("zero_optimization.compute_grad_norm", BOOL, LATER, "true", "", "Stages 1 and 2: false leaves the gradient norm out.", ZERO),
KEY("zero_optimization.round_robin_gradients", BOOL, NONE, "false", "", "every unit is cut into equal slices, so ranks have equal shares."),
KEY("zero_optimization.parameter_alignment", BOOL, NONE, "false", "", "parameters always start on blocks of 1,024 elements."),
KEY("zero_optimization.ignore_unused_parameters", BOOL, NONE, "true", "", "a schedule knows every parameter that it uses."),
KEY("zero_optimization.load_from_fp32_weights", BOOL, LATER, "true", "", "false rebuilds the masters from 16-bit weights on load.", ZERO),
KEY("zero_optimization.elastic_checkpoint", BOOL, NONE, "false", "", "a checkpoint names parameters and ranges, not ranks."),
KEY("zero_optimization.legacy_stage1", BOOL, REMOVED, "false", "", "DeepSpeed raises on it; use stage 1."),
KEY("zero_optimization.sub_group_size", INT, BUILT, NULL, "elements of the local slice", "With state or parameters on nvme, on GPUs also in host memory: elements of one unit that are read, updated and written at a time. Default: 4194304 (DeepSpeed: 1e9), which bounds the buffers.", .range = ">= 0", STATE_AWAY, FIELD(step.offload.sub_group_size)),
KEY("zero_optimization.stage3_prefetch_bucket_size", INT, BUILT, "1", "elements", "Units are gathered before their use until at least this many elements are; 0: none. The default is one unit; DeepSpeed's 5e7 gathers small models whole.", .range = ">= 0", STAGE_3, FIELD(step.zero.prefetch_bucket_size)),
KEY("zero_optimization.stage3_param_persistence_threshold", INT, BUILT, "0", "elements", "Units of at most this many elements stay whole on every rank and are gathered after each update. DeepSpeed counts tensors, and its default is 1e5; here a unit is one transfer, and the default is none.", .range = ">= 0", STAGE_3, FIELD(step.zero.param_persistence_threshold)),
KEY("zero_optimization.stage3_model_persistence_threshold", INT, BUILT, "9223372036854775807", "elements", "The most elements that stay whole because of stage3_param_persistence_threshold, units in the model's order.", .range = ">= 0", STAGE_3, FIELD(step.zero.model_persistence_threshold)),
KEY("zero_optimization.stage3_max_live_parameters", INT, BUILT, NULL, "elements", "No unit is gathered early while more than this many elements are gathered. Default: 1e9, or twice the largest unit if that is more.", .range = ">= 0", .unset = "-1", STAGE_3, FIELD(step.zero.max_live_parameters)),
KEY("zero_optimization.stage3_max_reuse_distance", INT, BUILT, "0", "elements", "A unit stays gathered if fewer elements than this are gathered before its next use. The default is none; DeepSpeed's 1e9 keeps small models whole on every rank.", .range = ">= 0", STAGE_3, FIELD(step.zero.max_reuse_distance)),
KEY("zero_optimization.stage3_module_granularity_threshold", INT, NONE, "0", "elements", "units are given by the model's description.", .range = ">= 0"),
KEY("zero_optimization.stage3_use_all_reduce_for_fetch_params", BOOL, NONE, "false", "", "slices are gathered, which moves half of what an all-reduce does."),
KEY("zero_optimization.stage3_allgather_sequential", BOOL, NONE, "false", "", "slices are gathered to where they are used, with no buffer between."),
KEY("zero_optimization.stage3_gather_16bit_weights_on_model_save", BOOL, NONE, "false", "", "the output is always a whole Hugging Face folder."),
KEY("zero_optimization.stage3_partition_stream_chunk_size", INT, NONE, "0", "elements", "weights are mapped from the file, so a rank does not hold them whole to cut them.", .range = ">= 0"),
KEY("zero_optimization.prefetch_bucket_size", INT, ALIAS, NULL, "elements", "The field's name in DeepSpeed's source.", .alias = "zero_optimization.stage3_prefetch_bucket_size"),
KEY("zero_optimization.param_persistence_threshold", INT, ALIAS, NULL, "elements", "The field's name in DeepSpeed's source.", .alias = "zero_optimization.stage3_param_persistence_threshold"),
KEY("zero_optimization.model_persistence_threshold", INT, ALIAS, NULL, "elements", "The field's name in DeepSpeed's source.", .alias = "zero_optimization.stage3_model_persistence_threshold"),
KEY("zero_optimization.max_live_parameters", INT, ALIAS, NULL, "elements", "The field's name in DeepSpeed's source.", .alias = "zero_optimization.stage3_max_live_parameters"),
KEY("zero_optimization.max_reuse_distance", INT, ALIAS, NULL, "elements", "The field's name in DeepSpeed's source.", .alias = "zero_optimization.stage3_max_reuse_distance"),
KEY("zero_optimization.module_granularity_threshold", INT, ALIAS, NULL, "elements", "The field's name in DeepSpeed's source.", .alias = "zero_optimization.stage3_module_granularity_threshold"),
KEY("zero_optimization.use_all_reduce_for_fetch_params", BOOL, ALIAS, NULL, "", "The field's name in DeepSpeed's source.", .alias = "zero_optimization.stage3_use_all_reduce_for_fetch_params"),
KEY("zero_optimization.allgather_sequential", BOOL, ALIAS, NULL, "", "The field's name in DeepSpeed's source.", .alias = "zero_optimization.stage3_allgather_sequential"),
KEY("zero_optimization.gather_16bit_weights_on_model_save", BOOL, ALIAS, NULL, "", "The field's name in DeepSpeed's source.", .alias = "zero_optimization.stage3_gather_16bit_weights_on_model_save"),
KEY("zero_optimization.partition_stream_chunk_size", INT, ALIAS, NULL, "elements", "The field's name in DeepSpeed's source.", .alias = "zero_optimization.stage3_partition_stream_chunk_size"),
KEY("zero_optimization.stage3_gather_fp16_weights_on_model_save", BOOL, ALIAS, NULL, "", "Old spelling.", .alias = "zero_optimization.stage3_gather_16bit_weights_on_model_save"),
KEY("zero_optimization.zero_hpz_partition_size", INT, LATER, "1", "ranks", "ZeRO++: ranks of the secondary group.", .range = ">= 0", ZERO),
KEY("zero_optimization.zero_quantized_weights", BOOL, LATER, "false", "", "ZeRO++: int8 all-gather.", ZERO),
KEY("zero_optimization.zero_quantized_gradients", BOOL, LATER, "false", "", "ZeRO++: int4 reduction.", ZERO),
KEY("zero_optimization.zero_quantized_nontrainable_weights", BOOL, LATER, "false", "", "Frozen weights kept as int8.", ZERO),
KEY("zero_optimization.zeropp_loco_param", ANY, LATER, NULL, "", "ZeRO++: LoCo error feedback, which DeepSpeed took out in 0.19.8.", ZERO),
KEY("zero_optimization.mics_shard_size", INT, BUILT, "-1", "ranks", "MiCS: ranks that share one copy of the parameters; sets sifr.shard_size, at any stage. DeepSpeed took MiCS out in 0.19.8; here the key still acts. -1: all ranks.", .range = ">= -1"),
KEY("zero_optimization.mics_hierarchical_params_gather", BOOL, NONE, "false", "", "a gather over several hosts always sends a slice to each host once, and shares it there."),
KEY("zero_optimization.memory_efficient_linear", BOOL, NONE, "true", "", "an internal of torch."),
KEY("zero_optimization.override_module_apply", BOOL, NONE, "true", "", "an internal of torch."),
KEY("zero_optimization.pipeline_loading_checkpoint", BOOL, NONE, "false", "", "weights are mapped from the file, not copied once for each rank."),
KEY("zero_optimization.log_trace_cache_warnings", BOOL, NONE, "false", "", "there is no trace: the schedule is worked out ahead."),
KEY("zero_optimization.enable_sanity_checks", BOOL, NONE, "false", "", "checks are always on."),
KEY("zero_optimization.save_muon_momentum_buffer_in_memory", BOOL, LATER, "false", "", "Keeps Muon's momentum off NVMe.", ZERO),
KEY("zero_optimization.cpu_offload", BOOL, ALIAS, NULL, "", "Old spelling.", .alias = "zero_optimization.offload_optimizer", .bool_means = "{\"device\": \"cpu\"}"),
KEY("zero_optimization.cpu_offload_param", BOOL, ALIAS, NULL, "", "Old spelling.", .alias = "zero_optimization.offload_param", .bool_means = "{\"device\": \"cpu\"}"),
KEY("zero_optimization.cpu_offload_params", BOOL, ALIAS, NULL, "", "Old spelling.", .alias = "zero_optimization.offload_param", .bool_means = "{\"device\": \"cpu\"}"),
KEY("zero_optimization.cpu_offload_use_pin_memory", BOOL, NONE, NULL, "", "DeepSpeed ignores it; see offload_optimizer.pin_memory."),
KEY("zero_optimization.leaf_module", SECTION, NONE, NULL, "", "units are given by the model's description."),
KEY("zero_optimization.leaf_module.classes", TEXTS, NONE, NULL, "", "units are given by the model's description."),
KEY("zero_optimization.leaf_module.names", TEXTS, NONE, "[]", "", "units are given by the model's description."),
KEY("zero_optimization.leaf_module.name_suffixes", TEXTS, NONE, "[]", "", "units are given by the model's description."),
KEY("zero_optimization.offload_param", SECTION, BUILT, NULL, "", "Stage 3: where the parameters that the model reads are kept."),
KEY("zero_optimization.offload_param.device", CHOICE, BUILT, "\"none\"", "", "Where each rank's slices of the parameters are kept; at stage 3 only. nvme: each slice is read before its unit is gathered, and written after its update. On CPU ranks, cpu is the same as none.", .choices = "none|cpu|nvme", FIT("parameters_on_disk", "parameters on disk"), FIELD(step.offload.param.device)),
KEY("zero_optimization.offload_param.nvme_path", TEXT, BUILT, NULL, "", "Directory on the disk for the slices; must be the same as in offload_optimizer, if both are given.", PARAM_NVME, FIELD(nvme_path.param)),
KEY("zero_optimization.offload_param.buffer_count", INT, BUILT, NULL, "", "Slices that may be in memory between the disk and their use. Default: as many as are needed, and one that is read ahead (DeepSpeed: 5).", .range = "> 0", .most = "1048576", .unset = "0", PARAM_AWAY, FIELD(step.offload.param.buffer_count)),
KEY("zero_optimization.offload_param.buffer_size", INT, BUILT, NULL, "elements", "The largest slice that is accepted; no buffer is larger than its slice. Default: no limit (DeepSpeed: 1e8).", .range = "> 0", .unset = "0", PARAM_AWAY, FIELD(step.offload.param.buffer_size)),
KEY("zero_optimization.offload_param.max_in_cpu", INT, BUILT, "0", "elements of the local slices", "Slices that stay in memory, units in the model's order, up to this many elements in all (DeepSpeed: 1e9, with which small models have nothing on disk).", .range = ">= 0", PARAM_NVME, FIELD(step.offload.param.max_in_cpu)),
KEY("zero_optimization.offload_param.pin_memory", BOOL, BUILT, "true", "", "Pins the memory that slices are read to and written from, as far as the limit of locked memory allows.", PARAM_NVME, FIELD(step.offload.param.pin_memory)),
KEY("zero_optimization.offload_optimizer", SECTION, BUILT, NULL, "", "Where optimizer state (fp32 master weights, both moments) is kept."),
KEY("zero_optimization.offload_optimizer.device", CHOICE, BUILT, "\"none\"", "", "Where the optimizer state is kept, at any stage (DeepSpeed: nvme at stage 3 only). On CPU ranks, cpu is the same as none.", .choices = "none|cpu|nvme", FIT("optimizer_on_disk", "optimizer state on disk"), FIELD(step.offload.optimizer.device)),
KEY("zero_optimization.offload_optimizer.nvme_path", TEXT, BUILT, NULL, "", "Directory on the disk for the state; each rank makes a directory in it and removes that at the end.", NVME, FIELD(nvme_path.optimizer)),
KEY("zero_optimization.offload_optimizer.buffer_count", INT, BUILT, NULL, "", "Buffers in memory, each for one kind of state (two kinds, in 16 bits three) of one sub-group. Default: enough to read one sub-group, update one and write one at the same time (DeepSpeed: 4).", .range = "> 0", .most = "1048576", .unset = "0", AWAY, FIELD(step.offload.optimizer.buffer_count)),
KEY("zero_optimization.offload_optimizer.pin_memory", BOOL, BUILT, "true", "", "Pins the memory that state and gradients are read to and written from, as far as the limit of locked memory allows.", NVME, FIELD(step.offload.optimizer.pin_memory)),
KEY("zero_optimization.offload_optimizer.pipeline_read", BOOL, BUILT, "true", "", "Reads the next sub-group during the update of the current one (DeepSpeed: false).", AWAY, FIELD(step.offload.optimizer.pipeline_read)),
KEY("zero_optimization.offload_optimizer.pipeline_write", BOOL, BUILT, "true", "", "Writes the last sub-group during the update of the current one (DeepSpeed: false).", AWAY, FIELD(step.offload.optimizer.pipeline_write)),
KEY("zero_optimization.offload_optimizer.fast_init", BOOL, NONE, "false", "", "moments begin as zeros that no one has to write."),
KEY("zero_optimization.offload_optimizer.ratio", NUMBER, BUILT, "1.0", "", "Share of the state that is offloaded, at any stage (DeepSpeed: stage 3 and cpu only). The rest is the state of whole units, in the model's order.", .range = "0..1", FIELD(step.offload.optimizer.ratio)),
KEY("zero_optimization.offload_optimizer.super_offload", BOOL, LATER, "false", "", "Offload for superchips."),
KEY("zero_optimization.offload_optimizer.cpuadam_cores_perc", NUMBER, LATER, "0.8", "", "Share of the cores for that.", .range = "0..1", .gate = "zero_optimization.offload_optimizer.super_offload"),
KEY("zero_optimization.zenflow", SECTION, LATER, NULL, "", "Updates the most important gradients at once and the rest behind; on where the section is there.", .ungated = true),
KEY("zero_optimization.zenflow.topk_ratio", NUMBER, LATER, "0.1", "", "Share that is updated at once.", .range = "0..1"),
KEY("zero_optimization.zenflow.select_strategy", CHOICE, LATER, "\"auto\"", "", "When they are chosen.", .choices = "auto|step|epoch"),
KEY("zero_optimization.zenflow.select_interval", INT, LATER, NULL, "steps", "How often they are chosen."),
KEY("zero_optimization.zenflow.update_interval", INT, LATER, NULL, "steps", "How often the rest is updated."),
KEY("zero_optimization.zenflow.overlap_step", BOOL, LATER, "false", "", "Updates behind the next step."),
KEY("zero_optimization.zenflow.offload", BOOL, LATER, "false", "", "Keeps the chosen ones' state on the host."),
KEY("zero_optimization.zenflow.auto_ratio", NUMBER, LATER, "0.99", "", "Threshold of the automatic interval.", .range = "0..1"),
KEY("zero_optimization.zenflow.full_warm_up_rounds", INT, LATER, "0", "", "Rounds that update everything."),
KEY("zero_optimization.zenflow.pt_reserved_cores_perc", NUMBER, LATER, "0.5", "", "Share of the cores left to torch.", .range = "0..1"),
KEY("zero_optimization.zenflow.steps_per_epoch", INT, LATER, NULL, "steps", "Steps of an epoch."),

KEY("activation_checkpointing", SECTION, BUILT, NULL, "", "Recomputation of activations. Each of partition_activations, cpu_checkpointing, contiguous_memory_optimization and number_checkpoints sets sifr.recompute to \"unit\" where that is not given."),
KEY("activation_checkpointing.partition_activations", BOOL, NONE, "false", "", "no two ranks hold the same activations, so there is nothing to split: that takes tensor parallelism."),
KEY("activation_checkpointing.cpu_checkpointing", BOOL, BUILT, "false", "", "On GPUs sets sifr.offload_activations to \"cpu\" where that is not given. On CPU ranks activations are in the host's memory anyway."),
KEY("activation_checkpointing.contiguous_memory_optimization", BOOL, NONE, "false", "", "the planner places every buffer in one block. As in DeepSpeed it needs partition_activations and number_checkpoints."),
KEY("activation_checkpointing.number_checkpoints", INT, BUILT, NULL, "units", "Units, between the first and the last, whose inputs are kept; the units between them are recomputed. As many as there are units, or more: the input of every unit. false counts as not given.", .range = "> 0", .unset = "0", .neutral = "false", .gate = "sifr.recompute", .opens = "\"unit\"", FIELD(step.number_checkpoints)),
KEY("activation_checkpointing.synchronize_checkpoint_boundary", BOOL, NONE, "false", "", "there is nothing to wait for: what computes runs in order, one instruction after the other."),
KEY("activation_checkpointing.profile", BOOL, BUILT, "false", "", "Prints at the end how long forward pass, recomputation and backward pass of each unit took per step.", FIELD(activations.profile)),
KEY("aio", SECTION, BUILT, NULL, "", "How the disk is read and written, where offload_optimizer, offload_param, sifr.offload_gradients or sifr.offload_activations is on nvme."),
KEY("aio.block_size", INT, BUILT, "1048576", "bytes", "Bytes of a request, a multiple of 4096.", .range = "> 0", .multiple = 4096, .most = "1073741824", ANY_NVME, FIELD(step.offload.aio.block_size)),
KEY("aio.queue_depth", INT, BUILT, "32", "requests", "Requests in flight in each thread's ring (DeepSpeed: 8).", .range = "> 0", .most = "4096", ANY_NVME, FIELD(step.offload.aio.queue_depth)),
KEY("aio.intra_op_parallelism", INT, BUILT, "1", "threads", "Threads, each with its own ring.", .range = "> 0", .most = "256", ANY_NVME, FIELD(step.offload.aio.intra_op_parallelism)),
KEY("aio.thread_count", INT, ALIAS, NULL, "", "The name in DeepSpeed's docs, which its source ignores.", .alias = "aio.intra_op_parallelism"),
KEY("aio.single_submit", BOOL, BUILT, "false", "", "Submits each request with a system call of its own, instead of as many as fit in the ring.", ANY_NVME, FIELD(step.offload.aio.single_submit)),
KEY("aio.overlap_events", BOOL, BUILT, "true", "", "Submits a new request as soon as one is done; false: when all requests in the ring are done.", ANY_NVME, FIELD(step.offload.aio.overlap_events)),
KEY("aio.use_gds", BOOL, LATER, "false", "", "Reads from NVMe straight into GPU memory; here files go through pinned host memory."),
KEY("checkpoint", SECTION, BUILT, NULL, "", "Checkpoints; here they are controlled by --save-steps and --resume."),
KEY("checkpoint.tag_validation", CHOICE, NONE, "\"Warn\"", "", "ranks cannot save different tags here.", .choices = "Ignore|Warn|Fail"),
KEY("checkpoint.load_universal", BOOL, NONE, "false", "", "every checkpoint names parameters and ranges, not ranks."),
KEY("checkpoint.use_node_local_storage", BOOL, LATER, "false", "", "Each host saves on its own disk."),
KEY("checkpoint.parallel_write", SECTION, LATER, NULL, "", "Writing in parallel."),
KEY("checkpoint.parallel_write.pipeline_stage", BOOL, LATER, "false", "", "Pipeline stages write in parallel."),
KEY("checkpoint.checkpoint_serialization", BOOL, NONE, "true", "", "checkpoints have one format, safetensors."),
KEY("checkpoint.writer", SECTION, NONE, NULL, "", "there is one writer: it checks, syncs and renames."),
KEY("checkpoint.writer.type", CHOICE, NONE, "\"fast\"", "", "there is one writer: it checks, syncs and renames.", .choices = "mock|python|fast"),
KEY("checkpoint.writer.io_buffer_size", INT, NONE, "67108864", "bytes", "the writer sizes its own buffer.", .range = "> 0"),
KEY("checkpoint.writer.io_buffer_double", BOOL, NONE, "true", "", "the writer has its own buffers."),
KEY("checkpoint.writer.io_multiplier", INT, NONE, "1", "", "the writer has its own buffers.", .range = "> 0"),
KEY("checkpoint.writer.show_statistics", BOOL, NONE, "false", "", "the time of a save is always said."),
KEY("checkpoint.writer.data_parallel", CHOICE, LATER, NULL, "", "Which ranks share the writing.", .choices = "replica|socket|machine"),
KEY("checkpoint.writer.decoupled", BOOL, LATER, "false", "", "Writes behind the next steps."),
KEY("datastates_ckpt", ANY, LATER, NULL, "", "The DataStates checkpoint engine."),
KEY("nebula", SECTION, REMOVED, NULL, "", "Nebula; DeepSpeed took it out."),
KEY("nebula.enabled", BOOL, REMOVED, "false", "", "Nebula; DeepSpeed took it out."),
KEY("nebula.persistent_storage_path", TEXT, REMOVED, NULL, "", "Nebula's directory."),
KEY("nebula.persistent_time_interval", INT, REMOVED, "100", "seconds", "Nebula's interval."),
KEY("nebula.num_of_version_in_retention", INT, REMOVED, "2", "", "Versions kept; sifr.save_total_limit is the one here."),
KEY("nebula.enable_nebula_load", BOOL, REMOVED, "true", "", "Loads from Nebula."),
KEY("nebula.load_path", TEXT, REMOVED, NULL, "", "Where from."),

KEY("comms_config", ANY, NONE, NULL, "", "DeepSpeed does not read this key either; see comms_logger."),
KEY("comms_logger", SECTION, BUILT, NULL, "", "A log of the collectives, which does not slow the steps (DeepSpeed waits after each one)."),
KEY("comms_logger.enabled", BOOL, BUILT, "false", "", "Prints a table at the end, by operation and message size: calls, latency, bandwidth, and stragglers among the ranks. The section alone does not switch it on.", FIELD(comms_logger.enabled)),
KEY("comms_logger.verbose", BOOL, BUILT, "false", "", "Also prints a line for each call of the first rank.", FIELD(comms_logger.verbose)),
KEY("comms_logger.prof_all", BOOL, BUILT, "true", "", "Logs all operations; false: those of prof_ops."),
KEY("comms_logger.prof_ops", TEXTS, BUILT, "[]", "", "Operations to log if prof_all is false: all_gather, reduce_scatter, control, send, recv. DeepSpeed's other names for them are accepted; all_reduce is the first two."),
KEY("comms_logger.debug", BOOL, NONE, "false", "", "a collective's caller is an instruction of the schedule: sifr.trace names each."),
KEY("flops_profiler", SECTION, LATER, NULL, "", "Counts operations by module; wall_clock_breakdown is what is built."),
KEY("flops_profiler.enabled", BOOL, LATER, "false", "", "Switches it on."),
KEY("flops_profiler.recompute_fwd_factor", NUMBER, LATER, "0.0", "", "Share of the forward that is recomputed.", .range = ">= 0"),
KEY("flops_profiler.profile_step", INT, LATER, "1", "steps", "The step that is counted.", .range = ">= 0"),
KEY("flops_profiler.module_depth", INT, LATER, "-1", "", "Depth of the printed tree."),
KEY("flops_profiler.top_modules", INT, LATER, "1", "", "Modules in the summary."),
KEY("flops_profiler.detailed", BOOL, LATER, "true", "", "Prints the whole tree."),
KEY("flops_profiler.output_file", TEXT, LATER, NULL, "", "Where to."),
KEY("tensorboard", SECTION, LATER, NULL, "", "TensorBoard event files."),
KEY("tensorboard.enabled", BOOL, LATER, "false", "", "Writes them; CSV and JSONL are always written into the output."),
KEY("tensorboard.output_path", TEXT, LATER, "\"\"", "", "Directory."),
KEY("tensorboard.job_name", TEXT, LATER, "\"DeepSpeedJobName\"", "", "Name of the run."),
KEY("csv_monitor", SECTION, LATER, NULL, "", "CSV files, one a series."),
KEY("csv_monitor.enabled", BOOL, LATER, "false", "", "Writes them; one CSV is always written into the output."),
KEY("csv_monitor.output_path", TEXT, LATER, "\"\"", "", "Directory."),
KEY("csv_monitor.job_name", TEXT, LATER, "\"DeepSpeedJobName\"", "", "Name of the run."),
KEY("wandb", SECTION, LATER, NULL, "", "Weights & Biases."),
KEY("wandb.enabled", BOOL, LATER, "false", "", "Sends metrics to it."),
KEY("wandb.group", TEXT, LATER, NULL, "", "Group of the run."),
KEY("wandb.team", TEXT, LATER, NULL, "", "Team."),
KEY("wandb.project", TEXT, LATER, "\"deepspeed\"", "", "Project."),
KEY("comet", SECTION, LATER, NULL, "", "Comet."),
KEY("comet.enabled", BOOL, LATER, "false", "", "Sends metrics to it."),
KEY("comet.samples_log_interval", INT, LATER, "100", "samples", "How often.", .range = "> 0"),
KEY("comet.project", TEXT, LATER, NULL, "", "Project."),
KEY("comet.workspace", TEXT, LATER, NULL, "", "Workspace."),
KEY("comet.api_key", TEXT, LATER, NULL, "", "Key."),
KEY("comet.experiment_name", TEXT, LATER, NULL, "", "Name."),
KEY("comet.experiment_key", TEXT, LATER, NULL, "", "Key of the experiment."),
KEY("comet.online", BOOL, LATER, NULL, "", "Online or offline."),
KEY("comet.mode", TEXT, LATER, NULL, "", "Create or continue."),
KEY("monitor_config", SECTION, LATER, NULL, "", "DeepSpeed's monitors, in one section."),
KEY("monitor_config.tensorboard", SECTION, LATER, NULL, "", "TensorBoard event files."),
KEY("monitor_config.tensorboard.enabled", BOOL, LATER, "false", "", "Writes them; CSV and JSONL are always written into the output."),
KEY("monitor_config.tensorboard.output_path", TEXT, LATER, "\"\"", "", "Directory."),
KEY("monitor_config.tensorboard.job_name", TEXT, LATER, "\"DeepSpeedJobName\"", "", "Name of the run."),
KEY("monitor_config.csv_monitor", SECTION, LATER, NULL, "", "CSV files, one a series."),
KEY("monitor_config.csv_monitor.enabled", BOOL, LATER, "false", "", "Writes them; one CSV is always written into the output."),
KEY("monitor_config.csv_monitor.output_path", TEXT, LATER, "\"\"", "", "Directory."),
KEY("monitor_config.csv_monitor.job_name", TEXT, LATER, "\"DeepSpeedJobName\"", "", "Name of the run."),
KEY("monitor_config.wandb", SECTION, LATER, NULL, "", "Weights & Biases."),
KEY("monitor_config.wandb.enabled", BOOL, LATER, "false", "", "Sends metrics to it."),
KEY("monitor_config.wandb.group", TEXT, LATER, NULL, "", "Group of the run."),
KEY("monitor_config.wandb.team", TEXT, LATER, NULL, "", "Team."),
KEY("monitor_config.wandb.project", TEXT, LATER, "\"deepspeed\"", "", "Project."),
KEY("monitor_config.comet", SECTION, LATER, NULL, "", "Comet."),
KEY("monitor_config.comet.enabled", BOOL, LATER, "false", "", "Sends metrics to it."),
KEY("monitor_config.comet.samples_log_interval", INT, LATER, "100", "samples", "How often.", .range = "> 0"),
KEY("monitor_config.comet.project", TEXT, LATER, NULL, "", "Project."),
KEY("monitor_config.comet.workspace", TEXT, LATER, NULL, "", "Workspace."),
KEY("monitor_config.comet.api_key", TEXT, LATER, NULL, "", "Key."),
KEY("monitor_config.comet.experiment_name", TEXT, LATER, NULL, "", "Name."),
KEY("monitor_config.comet.experiment_key", TEXT, LATER, NULL, "", "Key of the experiment."),
KEY("monitor_config.comet.online", BOOL, LATER, NULL, "", "Online or offline."),
KEY("monitor_config.comet.mode", TEXT, LATER, NULL, "", "Create or continue."),

KEY("elasticity", SECTION, REMOVED, NULL, "", "DeepSpeed took it out; set train_batch_size, train_micro_batch_size_per_gpu and gradient_accumulation_steps."),
KEY("elasticity.enabled", BOOL, REMOVED, "false", "", "DeepSpeed took it out; set train_batch_size, train_micro_batch_size_per_gpu and gradient_accumulation_steps."),
KEY("elasticity.max_train_batch_size", INT, REMOVED, "2000", "sequences", "Largest global batch.", .range = "> 0"),
KEY("elasticity.micro_batch_sizes", NUMBERS, REMOVED, "[2, 4, 6]", "sequences", "Micro batches to choose from.", .range = "> 0"),
KEY("elasticity.min_gpus", INT, REMOVED, "1", "ranks", "Fewest.", .range = "> 0"),
KEY("elasticity.max_gpus", INT, REMOVED, "10000", "ranks", "Most.", .range = "> 0"),
KEY("elasticity.min_time", INT, REMOVED, "0", "minutes", "Least time between changes.", .range = ">= 0"),
KEY("elasticity.prefer_larger_batch", BOOL, REMOVED, "true", "", "Of batches that fit as well, the larger."),
KEY("elasticity.prefer_large_batch", BOOL, ALIAS, NULL, "", "The name in DeepSpeed's docs.", .alias = "elasticity.prefer_larger_batch"),
KEY("elasticity.version", NUMBER, REMOVED, "0.2", "", "Version of the algorithm."),
KEY("elasticity.ignore_non_elastic_batch_info", BOOL, REMOVED, "false", "", "Batch keys beside it are ignored."),
KEY("elasticity.num_gpus_per_node", INT, REMOVED, "1", "ranks", "Ranks of a host.", .range = "> 0"),
KEY("elasticity.model_parallel_size", INT, REMOVED, "1", "ranks", "Ranks of a model.", .range = "> 0"),
KEY("autotuning", SECTION, LATER, NULL, "", "A search over configs; `sifr plan` prices one without running it."),
KEY("autotuning.enabled", BOOL, LATER, "false", "", "Switches it on."),
KEY("autotuning.fast", BOOL, LATER, "true", "", "Tunes the batch size only."),
KEY("autotuning.results_dir", TEXT, LATER, "\"autotuning_results\"", "", "Directory of results."),
KEY("autotuning.exps_dir", TEXT, LATER, "\"autotuning_exps\"", "", "Directory of experiments."),
KEY("autotuning.overwrite", BOOL, LATER, "true", "", "Overwrites results."),
KEY("autotuning.start_profile_step", INT, LATER, "3", "steps", "First measured step.", .range = ">= 0"),
KEY("autotuning.end_profile_step", INT, LATER, "5", "steps", "Last measured step.", .range = ">= 0"),
KEY("autotuning.metric", CHOICE, LATER, "\"throughput\"", "", "What is made best.", .choices = "throughput|latency|flops"),
KEY("autotuning.metric_path", TEXT, LATER, NULL, "", "File of the metric."),
KEY("autotuning.model_info_path", TEXT, LATER, NULL, "", "File of the model's sizes."),
KEY("autotuning.model_info", ANY, LATER, NULL, "", "The model's sizes.", .gate = "autotuning.enabled"),
KEY("autotuning.tuner_type", CHOICE, LATER, "\"gridsearch\"", "", "Kind of search.", .choices = "gridsearch|random|model_based"),
KEY("autotuning.tuner_early_stopping", INT, LATER, "5", "", "Experiments without gain before it stops.", .range = ">= 0"),
KEY("autotuning.tuner_num_trials", INT, LATER, "50", "", "Most experiments.", .range = "> 0"),
KEY("autotuning.num_tuning_micro_batch_sizes", INT, LATER, "3", "", "Micro batches tried.", .range = "> 0"),
KEY("autotuning.mp_size", INT, LATER, "1", "ranks", "Ranks of a model.", .range = "> 0"),
KEY("autotuning.min_train_batch_size", INT, LATER, "1", "sequences", "Least global batch.", .range = "> 0"),
KEY("autotuning.max_train_batch_size", INT, LATER, NULL, "sequences", "Largest global batch.", .range = "> 0"),
KEY("autotuning.min_train_micro_batch_size_per_gpu", INT, LATER, "1", "sequences", "Least micro batch.", .range = "> 0"),
KEY("autotuning.max_train_micro_batch_size_per_gpu", INT, LATER, "1024", "sequences", "Largest micro batch.", .range = "> 0"),
KEY("autotuning.arg_mappings", ANY, LATER, NULL, "", "Names of the user's arguments.", .gate = "autotuning.enabled"),

KEY("pipeline", SECTION, BUILT, NULL, "", "Pipeline stages: the model's units (embedding, blocks, head) on several ranks, one after the other, with any ZeRO stage among the ranks of a stage; docs/pipeline.md."),
KEY("pipeline.enabled", BOOL, BUILT, "false", "", "Switches it on; not needed where stages is above 1."),
KEY("pipeline.stages", INT, BUILT, "1", "stages", "Number of pipeline stages; it must divide the ranks. \"auto\": 1, and sifr plan --fit chooses it.", .range = "> 0", .unset = "0", FIT("pipeline_stages", "pipeline stages %s"), .flag = "pipeline-stages", .argument = "N", FIELD(step.pipeline.stages), IN(SPEED)),
KEY("pipeline.partition", TEXT, BUILT, "\"best\"", "", "How units are shared out: best (by the time that each takes), uniform (as many each), parameters (as equal in parameters as whole units allow), type:REGEX (as many each of those whose name it finds, letters of any case).", FIELD(step.pipeline.partition)),
KEY("pipeline.schedule", CHOICE, BUILT, "\"1f1b\"", "", "The order of micro batches: gpipe (all forward, then all backward), 1f1b (as few in memory as there are stages), interleaved (1f1b over several chunks of units a stage: a shorter bubble, more transfers), zb-h1 (1f1b whose gradients of weights are made while a stage would wait: a shorter bubble, more memory).", .choices = "gpipe|1f1b|interleaved|zb-h1", FIELD(step.pipeline.schedule)),
KEY("pipeline.chunks", INT, BUILT, "2", "chunks", "Runs of units that each stage has, with schedule interleaved.", .range = "> 1", .unset = "0|1", .gate = "pipeline.schedule", .opens = "\"interleaved\"", FIELD(step.pipeline.chunks)),
KEY("pipeline.seed_layers", BOOL, NONE, "false", "", "random numbers depend on seed, step, op and element, never on the stage."),
KEY("pipeline.activation_checkpoint_interval", INT, BUILT, "0", "units", "Above 0: what the backward pass reads is recomputed from the inputs of units, as with sifr.recompute unit, which keeps the input of each; 0: as sifr.recompute says.", .range = ">= 0", FIELD(step.pipeline.activation_checkpoint_interval)),
KEY("pipeline.pipe_partitioned", BOOL, LATER, "true", "", "Splits activations between stages over tensor-parallel ranks."),
KEY("pipeline.grad_partitioned", BOOL, LATER, "true", "", "Splits their gradients likewise."),
KEY("tensor_parallel", SECTION, LATER, NULL, "", "Tensor parallelism."),
KEY("tensor_parallel.enabled", BOOL, LATER, "false", "", "Switches it on."),
KEY("tensor_parallel.size", INT, LATER, "1", "ranks", "Ranks that share one model.", .neutral = "0", .range = ">= 0", .ungated = true),
KEY("tensor_parallel.autotp_size", INT, LATER, "0", "ranks", "DeepSpeed's name for the size; 0: off.", .neutral = "1", .range = ">= 0", .ungated = true),
KEY("tensor_parallel.dtype", TEXT, LATER, NULL, "", "Type of the split weights."),
KEY("tensor_parallel.preset_model", TEXT, LATER, NULL, "", "A known way to split, by architecture."),
KEY("tensor_parallel.tp_overlap_comm", BOOL, LATER, "false", "", "Communication behind computing."),
KEY("tensor_parallel.tp", SECTION, LATER, NULL, "", "DeepSpeed's inner section."),
KEY("tensor_parallel.tp.tp_size", INT, LATER, "1", "ranks", "Ranks that share one model.", .range = "> 0", .ungated = true),
KEY("tensor_parallel.tp.tp_grain_size", INT, LATER, "1", "elements", "Slices are multiples of this.", .range = "> 0"),
KEY("tensor_parallel.tensor_parallel", SECTION, ALIAS, NULL, "", "The long name of tp.", .alias = "tensor_parallel.tp"),
KEY("tensor_parallel.partition_config", ANY, LATER, NULL, "", "A way to split, layer by layer.", .gate = "tensor_parallel.enabled"),
KEY("tensor_parallel.injection_policy_tuple", ANY, LATER, NULL, "", "An internal of torch.", .gate = "tensor_parallel.enabled"),
KEY("tensor_parallel.vocab_parallel_lm_head", BOOL, LATER, NULL, "", "Splits the head over the vocabulary."),
KEY("tensor_parallel.vocab_parallel_ce_backend", CHOICE, LATER, "\"torch\"", "", "Loss of a split head.", .choices = "torch|liger"),
KEY("tensor_parallel.keep_module_on_host", BOOL, LATER, "false", "", "Keeps the whole model on the host."),
KEY("tensor_parallel.kernel_inject", BOOL, ALIAS, NULL, "", "The short name.", .alias = "tensor_parallel.replace_with_kernel_inject"),
KEY("tensor_parallel.replace_with_kernel_inject", BOOL, NONE, "false", "", "an internal of DeepSpeed's inference."),
KEY("expert_parallel", ANY, LATER, NULL, "", "Expert parallelism (autoep_size and its kin)."),
KEY("compression", SECTION, LATER, NULL, "", "Lossy compression of gradients between ranks."),
KEY("compression.enabled", BOOL, LATER, "false", "", "Switches it on."),
KEY("compression.type", CHOICE, LATER, "\"none\"", "", "Kind of compression.", .choices = "none|powerSGD|onebit|qgZ", .ungated = true),
KEY("compression.rank", INT, LATER, "1", "", "PowerSGD: rank of the approximation.", .range = "> 0"),
KEY("compression.start_iter", INT, LATER, "10", "steps", "PowerSGD: plain steps at the start.", .range = ">= 0"),
KEY("compression.min_compression_rate", NUMBER, LATER, "2", "", "PowerSGD: tensors that gain less stay dense.", .range = "> 0"),
KEY("compression.error_feedback", BOOL, LATER, "true", "", "PowerSGD: adds what was lost to the next step."),
KEY("compression.warm_start", BOOL, LATER, "true", "", "PowerSGD: starts from the last step's factors."),
KEY("compression.seed", INT, LATER, "0", "", "PowerSGD: seed of the factors.", .range = ">= 0"),
KEY("compression.params", SECTION, LATER, NULL, "", "Parameters of the kind of compression."),
KEY("compression.params.matrix_approximation_rank", INT, LATER, NULL, "", "PowerSGD: rank of the approximation.", .range = "> 0", .gate = "compression.enabled", .ungated = true),
KEY("compression.params.start_compressing_after_step", INT, LATER, NULL, "steps", "PowerSGD: plain steps at the start.", .range = ">= 0", .gate = "compression.enabled", .ungated = true),
KEY("compile", SECTION, LATER, NULL, "", "DeepCompile; a step is a planned schedule here."),
KEY("compile.deepcompile", BOOL, LATER, "false", "", "Switches it on."),
KEY("compile.disable", BOOL, NONE, "false", "", "DeepCompile is not supported yet, so it is always off."),
KEY("compile.backend", TEXT, NONE, NULL, "", "of torch.compile, which older DeepSpeed configures here; nothing is compiled."),
KEY("compile.autoep_non_moe", BOOL, LATER, "false", "", "Compiles around expert layers."),
KEY("compile.free_activation", BOOL, LATER, "false", "", "Frees activations early."),
KEY("compile.free_activation_threshold", INT, NONE, "10485760", "bytes", "the planner places every buffer.", .range = ">= 0"),
KEY("compile.offload_activation", BOOL, LATER, "false", "", "Activations on the host."),
KEY("compile.offload_activation_pin_memory", BOOL, NONE, "true", "", "acts with compile.offload_activation, which is not built."),
KEY("compile.offload_opt_states", BOOL, LATER, "false", "", "Optimizer state on the host."),
KEY("compile.offload_parameters", BOOL, LATER, "false", "", "Parameters on the host."),
KEY("compile.double_buffer", BOOL, NONE, "true", "", "the planner places every buffer."),
KEY("compile.symmetric_memory", BOOL, NONE, "false", "", "an internal of torch."),
KEY("compile.debug_log", BOOL, NONE, "false", "", "`sifr plan --dump` prints the schedule."),
KEY("compile.sync_before_reduce", BOOL, NONE, "false", "", "the schedule has the events that it needs."),
KEY("compile.sync_after_reduce", BOOL, NONE, "false", "", "the schedule has the events that it needs."),
KEY("compile.sync_before_allgather", BOOL, NONE, "false", "", "the schedule has the events that it needs."),
KEY("compile.sync_after_allgather", BOOL, NONE, "false", "", "the schedule has the events that it needs."),
KEY("compile.keep_int_input_tensors", BOOL, NONE, "true", "", "an internal of torch."),
KEY("compile.keep_all_input_tensors", BOOL, NONE, "false", "", "an internal of torch."),
KEY("compile.passes", TEXTS, LATER, NULL, "", "Passes to run."),
KEY("compression_training", ANY, REMOVED, NULL, "", "Quantization and pruning; DeepSpeed took it out."),
KEY("quantize_training", ANY, REMOVED, NULL, "", "Mixture of quantization; DeepSpeed took it out."),
KEY("weight_quantization", ANY, LATER, NULL, "", "Quantized weights for inference."),
KEY("data_efficiency", ANY, LATER, NULL, "", "Curriculum learning, dynamic batches and token dropping."),
KEY("curriculum_learning", ANY, REMOVED, NULL, "", "Growing sequence length; DeepSpeed moved it to data_efficiency."),
KEY("progressive_layer_drop", ANY, REMOVED, NULL, "", "Dropping layers; DeepSpeed took it out."),
KEY("eigenvalue", ANY, REMOVED, NULL, "", "Eigenvalues for quantization; DeepSpeed took it out."),
KEY("hybrid_engine", ANY, LATER, NULL, "", "Training and generating in turn."),
KEY("sparse_attention", ANY, REMOVED, NULL, "", "Block-sparse attention; DeepSpeed took it out."),

KEY("sifr", SECTION, BUILT, NULL, "", "Flags of `sifr train` may be given here, so that one file repeats a run; flags win."),
KEY("sifr.model", TEXT, BUILT, NULL, "", "Hugging Face model folder to train.", .argument = "DIR", FIELD(model)),
KEY("sifr.data", TEXTS, BUILT, NULL, "", "Text files, directories, globs or token stores to train on; or files of rows (JSON, JSON lines, CSV), which are conversations and the like for a decoder, and labelled examples for a classifier.", .argument = "PATH", FIELD(data)),
KEY("sifr.dataset", ANY, BUILT, NULL, "", "Rows to fine-tune on, instead of data: a list of {\"path\": PATH, \"type\": TYPE, \"weight\": X}. type, as data_type, and weight, 1 by default, may be left out; an epoch has of each source its rows times the weight; fields, such as {\"prompt\": \"question\", \"completion\": \"answer\"}, says how the rows name theirs; ignore_fields leaves some out; format is the text of rows of type alpaca (docs/fine-tuning.md).", .argument = "JSON"),
KEY("sifr.data_type", CHOICE, BUILT, "\"auto\"", "", "What rows to fine-tune on are; auto: found by the fields of each file's first row.", .choices = "auto|messages|sharegpt|alpaca|prompt_completion|text|preference", .argument = "TYPE", FIELD(data_type)),
KEY("sifr.data_fields", TEXTS, BUILT, NULL, "", "Fields of rows that the files name otherwise, as prompt=question: the name here, then the file's. Of data and eval_data; a source of dataset has fields of its own (docs/fine-tuning.md).", .argument = "NAME=FIELD"),
KEY("sifr.ignore_fields", TEXTS, BUILT, NULL, "", "Fields of rows, by the files' names, that are left out as though they were not there. A field that would change a row's text, and that its form does not read, ends the run otherwise (docs/rows.md).", .argument = "NAME"),
KEY("sifr.chat_template", TEXT, BUILT, NULL, "", "Chat template in place of the model folder's: a file, a name (chatml, llama3, ...; docs/fine-tuning.md has the list) or the template itself. The output folder gets it.", .argument = "FILE", FIELD(chat_template)),
KEY("sifr.chat_template_kwargs", ANY, BUILT, NULL, "", "Variables of the chat template in every row, such as {\"enable_thinking\": false}; a row's own chat_template_kwargs win, member by member (docs/fine-tuning.md).", .argument = "JSON"),
KEY("sifr.train_on", CHOICE, BUILT, "\"assistant\"", "", "Which tokens of a row are learned: all that the assistant writes (or the completion), its last turn, or all; completion: of a prompt and its completion the completion, and of messages all, as TRL's default is.", .choices = "assistant|last|all|completion", .argument = "PART", FIELD(train_on)),
KEY("sifr.packing", BOOL, BUILT, "false", "", "Puts several rows to fine-tune on into a sequence, best fit first, kept apart; without it each row is padded to seq_length (docs/fine-tuning.md).", FIELD(packing)),
KEY("sifr.group_by_length", BOOL, BUILT, "false", "", "Puts rows to fine-tune on of about the same length into a step, in an order that is a function of the seed, as the Trainer's option does. Every row takes seq_length tokens all the same, so this changes the order alone.", FIELD(group_by_length)),
KEY("sifr.skip_bad_rows", BOOL, BUILT, "false", "", "Counts rows that cannot be read or used, and goes on without them.", FIELD(skip_bad_rows)),
KEY("sifr.max_samples", INT, BUILT, "0", "rows", "Reads the first N rows of each source of rows to fine-tune on; 0: all.", .range = ">= 0", .argument = "N", FIELD(max_samples)),
KEY("sifr.drop_long_rows", BOOL, BUILT, "false", "", "Leaves out rows to fine-tune on that are longer than seq_length; without it they are cut at their end.", FIELD(drop_long)),
KEY("sifr.validation_split", NUMBER, BUILT, "0", "", "Share of the rows to fine-tune on that is held out, chosen by the seed, where eval_data is not given; from 1 on, their number.", .range = ">= 0", .argument = "X", FIELD(validation_split), IN(REPORT)),
KEY("sifr.preference", SECTION, BUILT, NULL, "", "Learns from preferences: rows with a chosen and a rejected answer (docs/preferences.md)."),
KEY("sifr.preference.loss_type", CHOICE, BUILT, "\"none\"", "", "DPO's loss, by TRL's names: sigmoid, hinge or ipo; or orpo, which has no reference.", .choices = "none|sigmoid|hinge|ipo|orpo", .flag = "preference", .argument = "LOSS", FIELD(preference.loss)),
KEY("sifr.preference.beta", NUMBER, BUILT, "0.1", "", "How much the answers' log-probabilities count against the reference's; of orpo, how much the odds count beside the cross entropy.", .range = "> 0", .gate = "sifr.preference.loss_type", .flag = "preference-beta", .argument = "X", FIELD(preference.beta)),
KEY("sifr.preference.reference", TEXT, BUILT, NULL, "", "File of `sifr score` with the reference's log-probabilities of the answers; default: the model's own before the first step, computed then and kept in OUTPUT/data.", .gate = "sifr.preference.loss_type", .flag = "reference", .argument = "FILE", FIELD(preference.reference)),
KEY("sifr.preference.dropout", BOOL, BUILT, "false", "", "Leaves the model's dropout and the adapters' on; without it both are off while preferences are learned, as TRL 1.16's disable_dropout has it.", .gate = "sifr.preference.loss_type", .flag = "preference-dropout", FIELD(preference.dropout)),
KEY("sifr.distill", SECTION, BUILT, NULL, "", "Learns from another model's distributions beside the labels (docs/distillation.md)."),
KEY("sifr.distill.scores", TEXT, BUILT, NULL, "", "File of `sifr score --top-k` of the other model, of the same data.", .flag = "distill", .argument = "FILE", FIELD(distill.scores)),
KEY("sifr.distill.temperature", NUMBER, BUILT, NULL, "", "Divides the logits of both models; must be that of the file, which is the default.", .range = "> 0", .gate = "sifr.distill.scores", .flag = "distill-temperature", .argument = "X", FIELD(distill.temperature)),
KEY("sifr.distill.weight", NUMBER, BUILT, "0.5", "", "Share of the divergence in the loss; the rest is the cross entropy.", .range = "0..1", .gate = "sifr.distill.scores", .flag = "distill-weight", .argument = "X", FIELD(distill.weight)),
KEY("sifr.output", TEXT, BUILT, NULL, "", "Folder for the trained model, logs and checkpoints.", .argument = "DIR", FIELD(output)),
KEY("sifr.task", CHOICE, BUILT, "\"auto\"", "", "What the model is trained for; auto: what its folder is. The data of the two kinds of classification are labelled rows (docs/classification.md), those of the others are text.", .choices = "auto|causal_lm|masked_lm|sequence_classification|token_classification", .argument = "TASK", FIELD(task)),
KEY("sifr.labels", TEXTS, BUILT, NULL, "", "Names of the labels of a new head, in order, as a list or with commas between; default: those of the training data, numbers ascending, then names in alphabetical order.", .argument = "NAMES"),
KEY("sifr.problem_type", CHOICE, BUILT, "\"auto\"", "", "What the labels of sequence_classification are; auto: what the folder says, else regression where there is one label, and one label of each row where there are more.", .choices = "auto|single_label_classification|multi_label_classification|regression", .argument = "KIND", FIELD(problem_type)),
KEY("sifr.new_head", BOOL, BUILT, "false", "", "Makes the head for labels anew, from the seed, where the folder has one already.", FIELD(new_head)),
KEY("sifr.text_column", TEXT, BUILT, NULL, "", "Column of the texts, or of the lists of words; default: the usual names.", .argument = "NAME", FIELD(text_column)),
KEY("sifr.pair_column", TEXT, BUILT, NULL, "", "Column of the second text of each pair; default: the usual names.", .argument = "NAME", FIELD(pair_column)),
KEY("sifr.label_column", TEXT, BUILT, NULL, "", "Column of the labels, or of the lists of tags; default: the usual names.", .argument = "NAME", FIELD(label_column)),
KEY("sifr.mlm_probability", NUMBER, BUILT, "0.15", "", "Share of the tokens that masked_lm predicts: 80 % of them become the mask token, 10 % a random one, 10 % stay.", .range = "0..1", .argument = "X", FIELD(mlm_probability)),
KEY("sifr.no_special_tokens", BOOL, BUILT, "false", "", "Leaves out the tokens that the tokenizer's post-processor puts around each document, which transformers adds by default: usually one that begins a text (docs/data.md).", FIELD(no_special_tokens)),
KEY("sifr.seq_length", INT, BUILT, NULL, "tokens", "Tokens of a sequence; default: the model's own maximum.", .range = "> 0", .argument = "N", FIELD(step.seq_length), IN(LENGTH)),
KEY("sifr.max_steps", INT, BUILT, NULL, "steps", "Optimizer steps of the run; -1, or not given: num_train_epochs decides.", .range = ">= -1", .argument = "N", FIELD(max_steps), IN(LENGTH)),
KEY("sifr.num_train_epochs", NUMBER, BUILT, "3.0", "passes over the data", "Length of the run if max_steps is not given.", .range = "> 0", .argument = "X", FIELD(num_train_epochs), IN(LENGTH)),
KEY("sifr.learning_rate", NUMBER, BUILT, NULL, "", "Learning rate; sets optimizer.params.lr, and scheduler.params.warmup_max_lr if that is \"auto\".", .range = ">= 0", .over = "optimizer.params.lr", .argument = "X", IN(LENGTH)),
KEY("sifr.lr_scheduler_type", CHOICE, BUILT, NULL, "", "Schedule of the rate by the Trainer's name; sets scheduler.type.", .choices = TRAINER_KINDS, .later = TRAINER_LATER, .over = "scheduler.type", .argument = "KIND", IN(LENGTH)),
KEY("sifr.lr_scheduler_kwargs", ANY, ALIAS, NULL, "", "The Trainer's name of the schedule's parameters.", .alias = "scheduler.params"),
KEY("sifr.warmup_ratio", NUMBER, BUILT, NULL, "", "Warm-up as a share of the run's steps, where warmup_steps is not given or 0.", .range = "0..<1", .over = "scheduler.params.num_warmup_steps", .argument = "X", IN(LENGTH)),
KEY("sifr.warmup_steps", NUMBER, BUILT, NULL, "steps", "Steps of the warm-up; below 1, a share of the run's. Sets scheduler.params.num_warmup_steps, and warmup_num_steps if that is \"auto\".", .range = ">= 0", .over = "scheduler.params.num_warmup_steps", .argument = "N", IN(LENGTH)),
KEY("sifr.per_device_train_batch_size", INT, BUILT, NULL, "sequences", "Sets train_micro_batch_size_per_gpu.", .range = "> 0", .over = "train_micro_batch_size_per_gpu", .argument = "N", IN(LENGTH)),
KEY("sifr.gradient_accumulation_steps", INT, BUILT, NULL, "", "Sets gradient_accumulation_steps.", .range = "> 0", .over = "gradient_accumulation_steps", .argument = "N", IN(LENGTH)),
KEY("sifr.seed", INT, BUILT, "42", "", "Seed of the data order and of dropout.", .range = ">= 0", .argument = "N", FIELD(step.seed)),
KEY("sifr.eval_data", TEXT, BUILT, NULL, "", "Held-out data, as data.", .argument = "PATH", FIELD(eval_data), IN(REPORT)),
KEY("sifr.eval_steps", INT, BUILT, "0", "steps", "Evaluates every N steps; 0: only at the end.", .range = ">= 0", .argument = "N", FIELD(eval_steps), IN(REPORT)),
KEY("sifr.eval_on_start", BOOL, BUILT, "false", "", "Evaluates before the first step too.", FIELD(eval_on_start), IN(REPORT)),
KEY("sifr.max_eval_windows", INT, BUILT, "0", "windows", "Evaluates on the first N windows; 0: on all.", .range = ">= 0", .argument = "N", FIELD(max_eval_windows), IN(REPORT)),
KEY("sifr.save_steps", INT, BUILT, "0", "steps", "Saves a checkpoint every N steps; 0: only at the end.", .range = ">= 0", .argument = "N", FIELD(save_steps), IN(REPORT)),
KEY("sifr.save_total_limit", INT, BUILT, "0", "checkpoints", "Keeps the newest N checkpoints; 0: all.", .range = ">= 0", .argument = "N", FIELD(save_total_limit), IN(REPORT)),
KEY("sifr.resume", BOOL, BUILT, "false", "", "Resumes from the newest checkpoint in the output.", FIELD(resume)),
KEY("sifr.shard_size", INT, BUILT, "0", "ranks", "Neighbouring ranks that share one copy of what the ZeRO stage cuts into slices; the other groups of as many ranks hold copies of it (HSDP, MiCS). Gradients cross between copies once a step, slice by slice. A divisor of the number of ranks, of a stage with pipeline stages, from 2 on; 0: all ranks share one copy; \"auto\": 0, and sifr plan --fit chooses it. The bits are those of one rank, as without it, where the number of copies is a power of two (docs/zero.md).", .range = ">= 0", FIT("shard_size", "shard_size %s"), .argument = "N", FIELD(step.mesh.shard_size), IN(SPEED)),
KEY("sifr.step_order", CHOICE, BUILT, "\"auto\"", "", "batch: all units of a micro batch, then the next micro batch; unit: all micro batches of a unit, then the next unit; auto: the faster one that fits.", .choices = "batch|unit|auto", .argument = "ORDER", FIT("step_order", "step_order %s"), FIELD(step.step_order), IN(SPEED)),
KEY("sifr.gradient_order", CHOICE, BUILT, "\"tree\"", "", "tree: sums do not depend on the number of ranks; sequential: takes less memory, but they do.", .choices = "tree|sequential", .argument = "ORDER", FIELD(step.gradient_order), IN(SPEED)),
KEY("sifr.offload_state", CHOICE, BUILT, "\"all\"", "", "Which optimizer state goes where offload_optimizer says: all, only the fp32 master weights, or only both moments.", AWAY, .choices = "all|master_weights|moments", .argument = "KIND", FIELD(step.offload.optimizer.state), IN(SPEED)),
KEY("sifr.offload_gradients", CHOICE, BUILT, "\"none\"", "", "Where final gradient sums are kept, at stages 2 and 3 or on one rank. nvme: each slice is written as soon as it is final, and read by the update. Sums that accumulation still adds to stay in memory: with step_order unit those of one unit. On CPU ranks, cpu is the same as none.", .choices = "none|cpu|nvme", .argument = "TIER", FIT("gradients_on_disk", "gradients on disk"), FIELD(step.offload.gradients), IN(SPEED)),
KEY("sifr.offload_activations", CHOICE, BUILT, "\"none\"", "", "Where the results of the forward pass that the backward pass reads are kept. nvme: they are written during the forward pass and read ahead during the backward pass, through a window in memory whose size follows from the model; with recompute unit they are the units' inputs. On CPU ranks, cpu is the same as none.", .choices = "none|cpu|nvme", .argument = "TIER", FIT("activations_on_disk", "activations on disk"), FIELD(step.offload.activations), IN(SPEED)),
KEY("sifr.nvme_path", TEXT, BUILT, NULL, "", "Directory on the disk for offload_gradients and offload_activations; default: that of offload_optimizer or offload_param on nvme.", .gate = "sifr.offload_activations", .opens = "\"nvme\"", .also = {"sifr.offload_gradients"}, .argument = "DIR", FIELD(nvme_path.rest), IN(SPEED)),
KEY("sifr.recompute", CHOICE, BUILT, "\"none\"", "", "unit: keeps only the inputs of units, and recomputes the rest for the backward pass; auto: also keeps the results that are most expensive to recompute, within activation_memory or else the machine's memory.", .choices = "none|unit|auto", .argument = "KIND", FIT("recompute", "recompute %s"), FIELD(step.recompute), IN(SPEED)),
KEY("sifr.activation_memory", BYTES, BUILT, NULL, "bytes", "The most memory that a rank's activations may take, such as \"1GiB\"; sets recompute to \"auto\". \"auto\": what the machine's memory leaves.", .range = "> 0", .unset = "0", .argument = "BYTES", FIT("activation_memory", "within %s"), FIELD(step.activation_memory), IN(SPEED)),
KEY("sifr.tile_tokens", INT, BUILT, "0", "tokens", "Ops that work row by row (norms, products, the MLP) process this many tokens of a micro batch at a time, so values that only they read take memory for that many: less memory for long sequences, the same results. A multiple of 1024, on GPUs of 8192; 0: all tokens at once.", .range = ">= 0", .argument = "N", FIT("tile_tokens", "tile_tokens %s"), FIELD(step.tile_tokens), IN(SPEED)),
KEY("sifr.no_decay", CHOICE, BUILT, "\"none\"", "", "Which weights have no weight decay. transformers: biases and weights of norms, by the rule of the Hugging Face Trainer; none: every trained weight decays, as with an optimizer of DeepSpeed.", .choices = "none|transformers", .argument = "RULE", FIELD(step.optimizer.no_decay), IN(LENGTH)),
KEY("sifr.layer_decay", NUMBER, BUILT, "1.0", "", "Layer-wise decay of the learning rate, as BEiT and ELECTRA are fine-tuned: the head has the whole rate, and each layer before it this share of the next one's, down to the embeddings. 1: all layers have one rate.", .range = "0..1", .argument = "X", FIELD(step.optimizer.layer_decay), IN(LENGTH)),
KEY("sifr.groups", ANY, BUILT, NULL, "", "Rates and decay of single weights: a list of {\"match\": PATTERN, \"lr\": X, \"weight_decay\": Y}, with shell patterns for names of weights; the first group that matches a weight counts. lr is the rate where others have optimizer.params.lr, and follows the schedule as that does; lr_scale, in its place, is a factor. Both are on top of layer_decay; weight_decay wins over no_decay.", .argument = "JSON"),
KEY("sifr.ema", SECTION, BUILT, NULL, "", "An exponential moving average of the trained weights (docs/optimizers.md)."),
KEY("sifr.ema.decay", NUMBER, BUILT, "0.0", "", "Keeps an average of the weights in fp32, beside what trains: after each update it becomes decay times itself plus 1 - decay times the weights; after the first one it is the weights. The run writes it as a model folder, ema, into the output. 0: none.", .range = "0..<1", .flag = "ema-decay", .argument = "X", FIELD(step.optimizer.ema_decay), IN(LENGTH)),
KEY("sifr.freeze", TEXTS, BUILT, NULL, "", "Weights that are not trained: shell patterns for their names in the model's safetensors files.", .argument = "PATTERN"),
KEY("sifr.lora", ANY, BUILT, NULL, "", "Trains low-rank adapters beside the model's weights, which stay as they are, and writes an adapter folder as PEFT does: {\"r\": 8, \"lora_alpha\": 16, \"target_modules\": [\"q_proj\", \"v_proj\"]}, with the keys of PEFT's LoraConfig (docs/lora.md).", .argument = "JSON"),
KEY("sifr.quantization", ANY, BUILT, NULL, "", "With adapters: holds the model's weights in 4 bits (QLoRA), with the keys of transformers' BitsAndBytesConfig: {\"load_in_4bit\": true, \"bnb_4bit_quant_type\": \"nf4\", \"bnb_4bit_use_double_quant\": true} (docs/qlora.md).", .argument = "JSON"),
KEY("sifr.adapter", TEXT, BUILT, NULL, "", "Adapter folder, of PEFT or of an earlier run, to go on from; its adapter_config.json is the config of the adapters.", .argument = "DIR", FIELD(adapter)),
KEY("sifr.device", CHOICE, BUILT, "\"auto\"", "", "What ranks compute on: cuda, GPUs; cpu; auto: GPUs where every rank has one that the program has kernels for, else the CPU. Generation runs on the CPU.", .choices = "auto|cpu|cuda", .argument = "DEVICE", FIELD(step.device), IN(SPEED)),
KEY("sifr.threads", INT, BUILT, "0", "threads", "Threads of a rank; 0: one for each core that it may use.", .range = ">= 0", .argument = "N", FIELD(step.threads), IN(SPEED)),
KEY("sifr.isa", TEXT, BUILT, NULL, "", "Instruction set of the kernels: avx512_bf16, avx512, avx2 or plain; default: the best that the processor has. With ranks on different processors, give one that all of them have.", .argument = "SET", FIELD(step.isa), IN(SPEED)),
KEY("sifr.trace", TEXT, BUILT, NULL, "", "Writes the timeline of a few steps, of every rank, for Perfetto or chrome://tracing (docs/profiling.md).", .argument = "FILE", FIELD(trace), IN(REPORT)),
KEY("sifr.trace_steps", TEXT, BUILT, NULL, "", "The steps to trace: one, or the first and the last as in 3..5; default: the second to the fourth step of the run.", .argument = "A..B", IN(REPORT)),
KEY("sifr.collective_timeout", INT, BUILT, "1800", "seconds", "A collective, or the start, that takes longer ends the run with exit code 4 and a report of the missing ranks. Time in which the first rank saves or evaluates counts too. 0: no limit.", .range = ">= 0", .argument = "N", FIELD(collective_timeout), IN(RANKS)),
KEY("sifr.logging_steps", INT, BUILT, "1", "steps", "Records loss, learning rate and norm every N steps.", .range = "> 0", .argument = "N", FIELD(logging_steps), IN(REPORT)),
};

/* The fields of sifr_settings that no key fills alone; their paths are the keys that fill them. */
static const config_key more_fields[] = {
KEY("bf16.enabled, fp16.enabled", CHOICE, BUILT, "\"fp32\"", "", "", .choices = "fp32|bf16|fp16", FIELD(step.precision)),
KEY("optimizer.params.betas", NUMBER, BUILT, "0.9", "", "", .range = BETAS, FIELD(step.optimizer.beta1)),
KEY("optimizer.params.betas", NUMBER, BUILT, "0.999", "", "", .range = BETAS, FIELD(step.optimizer.beta2)),
KEY("optimizer.params.beta1", BOOL, BUILT, "false", "", "", FIELD(step.optimizer.has_momentum)),
KEY("optimizer.params.muon_lr", NUMBER, BUILT, "0", "", "", .range = ">= 0", FIELD(step.optimizer.muon_scale)),
KEY("optimizer.params.adam_lr", NUMBER, BUILT, "0", "", "", .range = ">= 0", FIELD(step.optimizer.adam_scale)),
KEY("sifr.groups", ANY, BUILT, NULL, "", "", FIELD(step.optimizer.groups)),
KEY("sifr.groups", INT, BUILT, "0", "", "", .range = ">= 0", .most = DIGITS(CONFIG_MOST_GROUPS), FIELD(step.optimizer.group_count)),
KEY("zero_optimization.offload_optimizer.nvme_path, sifr.nvme_path", TEXT, BUILT, NULL, "", "", FIELD(step.offload.nvme_path)),
};
/* clang-format on */

enum { CONFIG_KEYS = sizeof config_keys / sizeof *config_keys };

const config_key *config_key_at(size_t index) {
    return index < CONFIG_KEYS ? &config_keys[index] : NULL;
}

size_t config_key_count(void) {
    return CONFIG_KEYS;
}

/* The first of `count` rows from *index on that has a field of sifr_settings. */
static const config_key *next_field(const config_key *rows, size_t count, size_t *index) {
    for (; *index < count; ++*index) {
        size_t field = rows[*index].field;
        if (field && field <= sizeof(sifr_settings)) return &rows[(*index)++];
    }
    return NULL;
}

const config_key *config_field_next(size_t *index) {
    const config_key *row = next_field(config_keys, CONFIG_KEYS, index);
    size_t more = *index - CONFIG_KEYS;
    if (row) return row;
    row = next_field(more_fields, sizeof more_fields / sizeof *more_fields, &more);
    *index = CONFIG_KEYS + more;
    return row;
}

const char *config_field_name(const config_key *row) {
    return row->member + strlen("step.");
}

config_range config_range_of(const char *range) {
    bool above = range[0] == '>' && range[1] != '=';
    if (range[0] == '>')
        return (config_range){strtod(range + (above ? 1 : 2), NULL), INFINITY, above, false};
    const char *end = strstr(range, "..") + 2;
    bool below = *end == '<';
    return (config_range){strtod(range, NULL), strtod(end + below, NULL), false, below};
}

bool config_range_holds(const char *range, double value) {
    if (!range) return true;
    config_range r = config_range_of(range);
    return (r.open_low ? value > r.low : value >= r.low) &&
           (r.open_high ? value < r.high : value <= r.high);
}

const config_key *config_key_find(const char *path, size_t *index) {
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        if (strcmp(config_keys[i].path, path) == 0) {
            if (index) *index = i;
            return &config_keys[i];
        }
    }
    return NULL;
}

const char *config_key_leaf(const config_key *key) {
    const char *dot = strrchr(key->path, '.');
    return dot ? dot + 1 : key->path;
}

const config_key *config_key_gate(const config_key *key) {
    if (key->gate) return config_key_find(key->gate, NULL);
    static const char *const switches[] = {"enabled", "device"};
    const char *leaf = config_key_leaf(key);
    if (leaf == key->path) return NULL;
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        char path[256];
        size_t length = (size_t)(leaf - key->path);
        if (length + strlen(switches[i]) >= sizeof path) return NULL;
        memcpy(path, key->path, length);
        strcpy(path + length, switches[i]);
        const config_key *gate = config_key_find(path, NULL);
        /* "sifr.device" has no value that switches its section off. */
        bool is_switch =
            gate && (!gate->choices || config_key_has_word(gate->choices, "none", NULL, NULL));
        if (is_switch) return gate == key ? NULL : gate;
    }
    return NULL;
}

bool config_key_has_word(const char *words, const char *word, int *index, char spelling[64]) {
    size_t length = strlen(word);
    for (int i = 0; words; i++) {
        const char *end = strchr(words, '|');
        size_t span = end ? (size_t)(end - words) : strlen(words);
        if (span == length && span < 64 && strncasecmp(words, word, span) == 0) {
            if (index) *index = i;
            if (spelling) memcpy(spelling, words, span), spelling[span] = 0;
            return true;
        }
        words = end ? end + 1 : NULL;
    }
    return false;
}
