/* Queries of a schedule. */
#ifndef PLAN_QUERIES_H
#define PLAN_QUERIES_H

#include "plan/schedule.h"

/* Whether the norm has the squares of this rank's slice of a segment: of what tensor ranks have
 * alike, the first's alone. */
bool plan_counts_segment(const plan_schedule *schedule, int32_t segment);

/* The ranks among which the parts of a segment's gradient are added up (model_segment.partial). */
plan_span plan_parts_span(const plan_schedule *schedule, int32_t segment);

/* Whether kernels cannot reach a buffer: it is on disk, or in host memory separate from the
 * device's. */
bool plan_is_offloaded(const plan_schedule *schedule, int32_t buffer);
bool plan_is_offloaded_tier(const plan_schedule *schedule, plan_tier tier);
/* The queue of transfers from and to a buffer that is offloaded. */
plan_queue plan_queue_of(const plan_schedule *schedule, int32_t buffer);
/* The tiers that the settings give to state. */
plan_tier plan_tier_of(sifr_tier tier);
plan_tier plan_master_tier(const plan_settings *settings);
plan_tier plan_moment_tier(const plan_settings *settings);
bool plan_parameters_offloaded(const plan_schedule *schedule); /* of any unit */

/* Whether a buffer is in device memory for a part of the step only, by first and last
 * (plan_find_lives). */
bool plan_comes_and_goes(const plan_schedule *schedule, int32_t buffer);

/* Where the device memory begins that is idle between steps, on a whole page: scratch and all that
 * comes and goes. Until a pending update has run, that is not idle. */
int64_t plan_idle_start(const plan_schedule *schedule);
/* The settings of an evaluation between the steps of a training plan. Its plan takes no memory of
 * its own where that which is idle is large enough. */
plan_settings plan_evaluation_of(const plan_settings *training, bool logits);

/* Sequences that stay together in a micro batch: 2 where pairs of answers are learned, else 1. */
int64_t plan_joined_sequences(const sifr_model *model);

/* Whether a buffer has its bytes of the device's block at an instruction; at -1, before the first
 * one, those that are always there have. */
bool plan_lives_at(const plan_schedule *schedule, int32_t buffer, int32_t instruction);
/* Of total_bytes, what lies between the classes at the peak. */
int64_t plan_gap_bytes(const plan_schedule *schedule);

/* Whether a segment's parameters stay whole on every rank at stage 3: small ones, asked in the
 * model's order, while there is room. *capacity begins as zero.model_persistence_threshold. */
bool plan_persists(const plan_schedule *schedule, int32_t segment, int64_t *capacity);

/* plan_may_delay_update: whether the settings offload state that updates read and write beside
 * them, but no parameters; equal on all ranks. plan_update_writes: whether this rank's update
 * writes such state; false if all of its slices are frozen or in memory. */
bool plan_may_delay_update(const plan_schedule *schedule);
bool plan_update_writes(const plan_schedule *schedule);

/* Whether steps like those that `compressed` tells of carry an instruction out. */
bool plan_runs(const plan_schedule *schedule, const plan_instruction *instruction);

/* Bytes that a step reads from disk and writes to disk (plan_disk), or copies from host memory and
 * to host memory (plan_copies). */
void plan_disk(const plan_schedule *schedule, int64_t *read, int64_t *written);
void plan_copies(const plan_schedule *schedule, int64_t *read, int64_t *written);

/* Host memory through which a device that hides its memory reads the file (bytes[0]) and writes it
 * (bytes[1]): the most that transfers have in progress at a time; 0 where they are direct. */
void plan_staging(const plan_schedule *schedule, int64_t bytes[2]);
/* Of each of the two pieces of host memory through which state of such a device is filled, saved
 * and loaded: at most PLAN_MOST_PIECE, and no more than the largest segment in fp32 takes; 0
 * elsewhere, and where the parameters are another schedule's. */
#define PLAN_MOST_PIECE ((int64_t)16 << 20)
int64_t plan_piece_bytes(const plan_schedule *schedule);
/* Host memory separate from the device's: host_bytes, that of files, and the pieces. */
int64_t plan_host_bytes(const plan_schedule *schedule);

/* Bytes of the file (PLAN_NVME) or of host memory (PLAN_HOST), by class; their sum is nvme_bytes or
 * host_bytes. */
void plan_offloaded_classes(const plan_schedule *schedule, plan_tier tier,
                            int64_t bytes[PLAN_CLASSES]);

/* Elements of a segment with padding to whole blocks of each slice, also on other stages than those
 * that read it. */
int64_t plan_padded_elements(const plan_schedule *schedule, int32_t segment);

bool plan_is_collective(const plan_instruction *instruction); /* a transfer of a whole group */
/* Bytes of a sum's result, for a slice. */
int64_t plan_summed_bytes(const plan_instruction *instruction);
/* Bytes that a collective delivers to this rank from others: N-1 slices; of a sum those that are
 * added and those of the result; of an exchange all parts but its own. */
int64_t plan_delivered(const plan_schedule *schedule, const plan_instruction *instruction);

/* Bytes that a step delivers to this rank by gathers and by reductions: padded elements x (N-1)/N x
 * bytes of an element as sent, for each pass over them. A sum is a reduction and a gather. */
void plan_wire(const plan_schedule *schedule, int64_t *gathered, int64_t *reduced);
/* The same of the transfers among the ranks of one span. */
void plan_wire_of(const plan_schedule *schedule, plan_span span, int64_t *gathered,
                  int64_t *reduced);

/* The spans with several ranks of which a plan says what they move. PLAN_BATCH is among them where
 * something is added over it (PowerSGD). Returns their number. */
enum { PLAN_WIRE_SPANS = 7 };
size_t plan_wire_spans(const plan_schedule *schedule, plan_span out[PLAN_WIRE_SPANS]);

/* Bytes that exchanges deliver, all and those of one span. */
int64_t plan_exchanged(const plan_schedule *schedule);
int64_t plan_exchanged_of(const plan_schedule *schedule, plan_span span);
/* Of one exchange, the parts from ranks of other hosts, each of `ranks_per_host` (0: one host). */
int64_t plan_exchange_crossing(const plan_schedule *schedule, const plan_instruction *in,
                               int32_t ranks_per_host);

/* Of all those, the bytes that come from other hosts, each of `ranks_per_host` ranks (0: one host).
 * A gather brings each slice to a host once, and a reduction in fp32 one sum of each host's ranks.
 */
int64_t plan_wire_crossing(const plan_schedule *schedule, plan_span span, int32_t ranks_per_host);

/* Bytes that a step receives from other stages of a pipeline; and those of other hosts, each of
 * `ranks_per_host` ranks (0: one host). */
int64_t plan_received(const plan_schedule *schedule);
int64_t plan_received_crossing(const plan_schedule *schedule, int32_t ranks_per_host);

/* Gathers and reductions that a step starts, those of sums too; 0 for one rank. */
void plan_calls(const plan_schedule *schedule, int64_t *gathers, int64_t *reductions);

/* Whether sums of gradients are compressed after some steps; not on one data rank. */
bool plan_compresses(const plan_settings *settings);
/* The trained matrices of a model, of all stages, and those of them that would be compressed. */
void plan_count_compressed(const sifr_model *model, const plan_settings *settings,
                           int64_t *compressed, int64_t *matrices);
/* The rank of the factors of a trained weight's gradient; 0: it is sent as it is. */
int64_t plan_compressed_rank(const plan_settings *settings, const model_weight *weight);

/* Whether gathers of a segment's parameters carry codes that the owner makes of them (qwZ), on any
 * number of ranks; of one that persists there are no gathers. */
bool plan_quantises(const plan_schedule *schedule, int32_t segment);

/* Whether gathers of any segment do: false where all of them persist. */
bool plan_quantises_some(const plan_schedule *schedule);

/* Whether gradients travel to slices as codes that ranks make of their sums (qgZ). */
bool plan_quantises_sums(const plan_settings *settings);

/* What ZeRO cuts into slices: each stage one more. */
typedef enum plan_cut {
    PLAN_CUT_OPTIMIZER, /* masters and states of the optimizer */
    PLAN_CUT_SUMS,      /* of gradients, as soon as they are reduced */
    PLAN_CUT_WEIGHTS
} plan_cut;

/* Whether the settings cut it, whatever the number of ranks: one rank, too, offloads slices. */
bool plan_cuts(const plan_settings *settings, plan_cut what);
/* Into how many slices, of which a rank has one; 1: each rank has all of it. */
int32_t plan_slices(const plan_settings *settings, plan_cut what);
/* Whether several ranks each keep sums of whole gradients. */
bool plan_sums_are_whole(const plan_settings *settings);

/* Of each sequence, the tokens that a context rank has, in its place; and of a micro batch. */
int64_t plan_run_length(const plan_settings *settings);

/* The runs of each sequence that make up a rank's tokens: one, or with gathered keys two of equal
 * length (device_attention_run). */
typedef struct plan_token_runs {
    int count;
    int64_t length, first[2];
} plan_token_runs;
plan_token_runs plan_runs_of_tokens(const plan_settings *settings);
int64_t plan_tokens(const plan_settings *settings);

base_dtype plan_dtype(const plan_settings *settings);   /* of parameters and activations */
int64_t plan_cache_rows(const plan_settings *settings); /* of all sequences of a batch */
/* What node n, which model_is_cached, keeps in generation: rows of all sequences x columns. */
void plan_cache_shape(const sifr_model *model, const plan_settings *settings, int32_t n,
                      int64_t *rows, int64_t *columns, base_dtype *dtype);
bool plan_narrow_gradients(const plan_settings *settings); /* sums of gradients have 16 bits */
base_dtype plan_sum_type(const plan_settings *settings);   /* of them */
/* fp32 sums of gradients are sent in communication_data_type. */
bool plan_converts_gradients(const plan_settings *settings);
plan_code plan_sent_sums(const plan_settings *settings); /* how they are sent */
bool plan_has_masters(const plan_settings *settings);    /* in addition to the parameters */
base_dtype plan_moment_type(const plan_settings *settings);
base_dtype plan_state_type(const plan_settings *settings, const optim_row *row, int state);
const optim_row *plan_row(const plan_schedule *schedule, int32_t segment); /* that trains it */

/* Of updates by weight (optim_row.by_weight): how many parts of a weight have sums of their own,
 * one for each rank that owns some of it; and the bytes of one rank's sums for all weights of a
 * segment. */
int32_t plan_sum_parts(const plan_settings *settings);
/* The same of tensor ranks: 1 where all of them have the segment's weights whole. A
 * part of the sums has theirs, one behind the other. */
int32_t plan_sum_tensors(const plan_schedule *schedule, int32_t segment);
int64_t plan_sum_bytes(const plan_schedule *schedule, int32_t segment);

/* Index in the global batch of a micro batch of the rank at `place` of PLAN_DATA. It seeds the
 * random numbers of the micro batch and gives its place in the tree of sums, so both equal those of
 * one rank with all micro batches. */
int32_t plan_global_micro_batch(const plan_settings *settings, int32_t place, int32_t micro_batch);

/* How many neighbours of PLAN_DATA have a micro batch each before the first of them has its next;
 * 1: those of a rank follow each other. Sums are then made over these ranks first. */
int32_t plan_batch_neighbours(const plan_settings *settings);

/* Writes a line for each instruction, for people, to `line` (without newline). */
void plan_dump(const plan_schedule *schedule, void (*line)(void *user, const char *text),
               void *user);

/* Bytes that a buffer of `bytes` occupies, up to the start of the next buffer. */
int64_t plan_capacity(int64_t bytes);

#endif
