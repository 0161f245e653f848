/* The facts about a run that its checkpoints record, to tell whether another run can resume from
 * them.
 */
#ifndef TRAIN_FINGERPRINT_H
#define TRAIN_FINGERPRINT_H

#include <jansson.h>

#include "config/config.h"
#include "data/data.h"
#include "data/epochs.h"
#include "engine/handle.h"

/* New objects that the caller owns; NULL when memory ran out. */

/* Facts that must be equal: the weights' names and shapes, the data, and how data are cut into
 * batches. */
json_t *train_fingerprint_must_match(const sifr_config *config, const engine_folder *folder,
                                     const data_set *data, int64_t length);

/* Whether a checkpoint's facts are of the same data; NULL: no. */
bool train_fingerprint_same_data(const json_t *must_match, const data_set *data);

/* Adds the task and the labels of a model that has them; false when memory ran out. */
bool train_fingerprint_labels(json_t *must_match, const engine_folder *folder);

/* Adds how epochs end; nothing where batches are joined, as checkpoints had them that lack it.
 * False when memory ran out. */
#define TRAIN_FINGERPRINT_LAST "dataloader_drop_last"
bool train_fingerprint_batches(json_t *must_match, const data_epochs *epochs);

/* Facts that may change, but change the results: optimizer, schedule, types, files of targets,
 * machine. tests/train/test_fingerprint_keys.c says of each key of the config where it is held. */
json_t *train_fingerprint_may_differ(const sifr_config *config, const sifr_engine *engine);

/* The note of the order in which gradients of a global batch are added: equal ones, equal bits. */
#define TRAIN_FINGERPRINT_SUMS "gradient sums"
json_t *train_fingerprint_sums(const plan_settings *settings);

/* Of what may differ, the values of fields that checkpoints from before them lack: the keys'
 * defaults. Of how gradients are added (train/prepare/pinned.h says so) and of files nothing is
 * known there, so they count as equal to those of `may_differ`. Some older ones also say what had
 * no effect, which is no difference. */
json_t *train_fingerprint_defaults(const json_t *may_differ, const sifr_optimizer *optimizer);

/* Of what may differ, in a checkpoint and in this run: in words for a message, and without what
 * follows from another difference. False where memory ran out. */
bool train_fingerprint_words(json_t *was, json_t *now);

/* Adds what adapters multiply by; nothing without adapters. False where memory ran out. */
bool train_fingerprint_lora(json_t *must_match, const model_lora *lora);

#endif
