/* The text model of a folder with a tower as a model folder of its own, as its plain decoder has
 * it.
 */
#ifndef CONVERT_EXPORT_TEXT_H
#define CONVERT_EXPORT_TEXT_H

#include "checkpoint/model_source.h"

/* Gives the tensors that are to be written the plain names, and lets nothing go along. SIFR_USAGE
 * for a model without a tower, and for an adapter. */
sifr_status convert_text_tensors(checkpoint_model *model, sifr_error *error) SIFR_MUST_CHECK;

/* Of the files that were copied into `folder`: writes config.json of the text model, and removes
 * what only the tower needs. */
sifr_status convert_text_files(const checkpoint_model *model, const char *folder,
                               sifr_error *error) SIFR_MUST_CHECK;

#endif
